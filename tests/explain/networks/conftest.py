"""Planted corpora in memory, whose rationale is known by construction."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eraser_hub.explain.instances import Instance

torch = pytest.importorskip("torch")


def planted_instances(kind: str, split: str, size: int, query: bool = False) -> tuple[list[Instance], list[str]]:
    """Instances of ``samples/plant.py`` and their labels."""
    from eraser_hub.samples.plant import planted

    instances = []
    for record, document in planted(kind, split, size):
        tokens = tuple(document.split())
        spans = [(one["start_token"], one["end_token"]) for group in record["evidences"] for one in group]
        flags = tuple(any(start <= place < end for start, end in spans) for place in range(len(tokens)))
        asked = tuple(record["query"].split()) if query else ()
        name = record["annotation_id"]
        instances.append(Instance(name, asked, (name,), (tokens,), record["classification"], (flags,)))
    return instances, [str(one.label) for one in instances]


@pytest.fixture(scope="session")
def planted() -> Callable[..., tuple[list[Instance], list[str]]]:
    """Makes planted instances; see :func:`planted_instances`."""
    return planted_instances


@pytest.fixture(autouse=True)
def one_thread():
    """Small networks are fastest on one thread, and the same on any machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
