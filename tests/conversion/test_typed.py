"""Plain values become typed records; an error names the place of the wrong value, keys of dictionaries included."""

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
    splits: dict[str, dict[str, Document]] = {}


SOUND = {"id": "a"}


@pytest.mark.parametrize(
    ("value", "field", "found"),
    [
        ({"documents": [SOUND, SOUND, SOUND, {"id": 3}]}, "documents[3].id", "found 3"),
        ({"documents": [SOUND, {}]}, "documents[1]", "no keys"),
        ({"documents": [{"id": "a", "sizes": {"x": 1, "y.z": "2"}}]}, "documents[0].sizes.y.z", "'2'"),
        (
            {"splits": {"val": {"x": SOUND}, "test": {"x": SOUND, "y": {"id": []}}}},
            "splits.test.y.id",
            "a list",
        ),
        ({"splits": {"val": {}, "test": {"y": {"sizes": {}}}}}, "splits.test.y", "'sizes'"),
        ({"splits": {"[0]": {"": 7}}}, "splits.[0].", "found 7"),
    ],
)
def test_the_field_and_what_stands_there_are_named(value, field, found):
    with refused(found, field=field, file="release.json"):
        convert_type(value, Release, file="release.json")
    with refused(found, field=f"movies.{field}"):
        convert_type(value, Release, "movies")
