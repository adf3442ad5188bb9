"""Split names: the releases say ``val``, the Hub says ``validation``; both are understood everywhere."""

_DATASET_NAME = {"val": "validation"}
_RELEASE_NAME = {"validation": "val"}


def dataset_split(name: str) -> str:
    """Return the split's name in a Hub dataset (``val`` -> ``validation``; any other name stays as it is)."""
    return _DATASET_NAME.get(name, name)


def release_split(name: str) -> str:
    """Return the split's name in a release's files (``validation`` -> ``val``; any other name stays as it is)."""
    return _RELEASE_NAME.get(name, name)
