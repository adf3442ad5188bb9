"""Plain values become typed records; errors name the place of the wrong value, a key of any name as [...]."""

from __future__ import annotations

import msgspec
import pytest

from eraser_hub.conversion.typed import convert_type

from ..refusals import refused

pytestmark = pytest.mark.unit


class Document(msgspec.Struct):
    id: str
    sizes: dict[str, int] = {}


class Release(msgspec.Struct):
    documents: list[Document] = []


SOUND = {"id": "a"}


@pytest.mark.parametrize(
    ("value", "field", "found"),
    [
        ({"documents": [SOUND, SOUND, SOUND, {"id": 3}]}, "documents[3].id", "found 3"),
        ({"documents": [SOUND, {}]}, "documents[1]", "no keys"),
        ({"documents": [{"id": "a", "sizes": {"x": 1, "y.z": "2"}}]}, "documents[0].sizes[...]", "integer"),
    ],
)
def test_the_field_and_what_stands_there_are_named(value, field, found):
    with refused(found, field=field, file="release.json"):
        convert_type(value, Release, file="release.json")
    with refused(found, field=f"movies.{field}"):
        convert_type(value, Release, "movies")
