"""Files of scikit-learn pipelines: opened without running code, and without arrays that lead out of their bounds."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

import msgspec
import numpy as np

from eraser_hub.records.errors import DataError, UsageError, get_first_line

SCHEMA = "schema.json"  # of a skops archive
# needed by forests beyond the types that skops trusts; its arrays are checked once it is open
TREE = "sklearn.tree._tree.Tree"
# parts of scikit-learn that predict in Python, or in compiled code whose arrays are checked here. Support vectors,
# gradient boosting and neighbours are none of them: their compiled code follows whatever a file tells it
CHECKED = (
    "sklearn._loss.", "sklearn.decomposition._truncated_svd.", "sklearn.dummy.", "sklearn.ensemble._bagging.",
    "sklearn.ensemble._forest.", "sklearn.ensemble._weight_boosting.", "sklearn.feature_extraction.text.",
    "sklearn.feature_selection.", "sklearn.linear_model.", "sklearn.multiclass.", "sklearn.naive_bayes.",
    "sklearn.pipeline.", "sklearn.preprocessing._data.", "sklearn.preprocessing._label.",
    "sklearn.semi_supervised._self_training.", "sklearn.tree.",
)  # fmt: skip


def load_pipeline(path: Path, trust_pickle: bool = False) -> Any:
    """Open a fitted pipeline.

    A skops file is opened without running code; a joblib or pickle file runs whatever it holds, so it needs
    ``trust_pickle``.

    Raises:
        DataError: an unknown ending, a pickle without trust, a skops file that holds other types than those of
            :data:`CHECKED` or arrays that lead out of their bounds, something without ``predict_proba``, a model that
            is not fitted or takes no strings.
    """
    if path.suffix == ".skops":
        model = _load_skops(path)
    elif path.suffix in (".joblib", ".pkl", ".pickle"):
        if not trust_pickle:
            trusted = f"{path.name}(trust_pickle=True)"
            message = f"a pickle runs code when it is opened: say {trusted} if you trust its source, or save the model "
            raise UsageError(message + "with skops", file=path)
        import joblib

        try:
            model = joblib.load(path)
        except Exception as error:  # unpickling raises whatever the pickle holds
            raise DataError(f"cannot be opened: {get_first_line(error)}", file=path) from error
    else:
        raise DataError("expected a model file ending in .skops, .joblib or .pkl", file=path)
    if not hasattr(model, "predict_proba"):
        message = f"expected a classifier with predict_proba, found {type(model).__name__}"
        raise DataError(message, file=path)
    check_takes_strings(model, path)
    return model


def check_takes_strings(model: Any, path: Path | None = None) -> None:
    """Refuse a model that is not fitted, or that takes no strings, such as a classifier without its vectoriser."""
    from sklearn.exceptions import NotFittedError

    name = type(getattr(model, "steps", [("", model)])[-1][1]).__name__
    try:
        model.predict_proba(["a b"])
    except NotFittedError as error:
        raise DataError(f"expected a fitted model, found {name} before its fit", file=path) from error
    except Exception as error:  # a model raises what its own reading of the input raises
        message = f"expected a pipeline over strings (a vectoriser, then a classifier), found {name}"
        raise DataError(f"{message}: {get_first_line(error).rstrip(':')}", file=path) from error


def _load_skops(path: Path) -> Any:
    import skops.io

    from eraser_hub.conversion.download import FREE_BYTES, MAX_MEMBERS, get_max_unpacked_bytes

    try:
        packed = path.stat().st_size
        with ZipFile(path) as archive:
            sizes = {member.filename: member.file_size for member in archive.infolist()}
            total = sum(sizes.values())
            if len(sizes) > MAX_MEMBERS or total > get_max_unpacked_bytes(packed) or sizes.get(SCHEMA, 0) > FREE_BYTES:
                message = f"unpacks to {total:,} bytes, which no model does ({packed:,} packed)"
                raise DataError(message, file=path)
            types = set(_list_types(msgspec.json.decode(archive.read(SCHEMA))))
        unchecked = {name for name in types if name.startswith("sklearn.") and not name.startswith(CHECKED)}
        if refused := sorted(unchecked | (set(skops.io.get_untrusted_types(file=path)) - {TREE})):
            message = "expected scikit-learn's counts, linear models, naive Bayes, trees and forests alone, found "
            raise DataError(f"{message}{', '.join(refused[:5])}: opening it could run code or crash", file=path)
        model = skops.io.load(path, trusted=[TREE])
        check_arrays(model)
    except DataError as error:
        raise error if error.file else error.at(file=path) from None
    except Exception as error:  # skops raises many kinds on a broken file
        raise DataError(f"not a readable skops file: {get_first_line(error)}", file=path) from error
    return model


def _list_types(schema: Any) -> Iterator[str]:
    """Yield the name of each class in the schema of a skops archive."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting += part.values()
            yield f"{part.get('__module__')}.{part.get('__class__')}"
        elif isinstance(part, list):
            waiting += part


def check_arrays(model: Any) -> None:
    """Refuse a model whose arrays point outside what they index: compiled code follows them without looking.

    Raises:
        DataError: nodes of a tree, or a vocabulary, that point outside; an attribute in a method's place.
    """
    waiting, seen = [model], set[int]()
    while waiting:
        part = waiting.pop()
        if id(part) in seen or isinstance(part, type):
            continue
        seen.add(id(part))
        if isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, (list, tuple, set)):
            waiting += part
        elif isinstance(part, np.ndarray):
            waiting += part.ravel().tolist() if part.dtype == object else []
        elif f"{type(part).__module__}.{type(part).__qualname__}" == TREE:
            raise DataError("expected each decision tree in an estimator of its own, found one elsewhere")
        else:
            values = getattr(part, "__dict__", {})
            replaced = [name for name in values if callable(getattr(type(part), name, None))]
            if replaced:
                raise DataError(f"expected {type(part).__name__}'s own {replaced[0]}, found another in its place")
            size, trees = values.get("n_features_in_"), [part]
            if type(part).__module__ == "sklearn.ensemble._forest":  # it alone checks the input of its trees
                trees += list(values.get("estimators_", ()))
            for tree in (one.tree_ for one in trees if "tree_" in getattr(one, "__dict__", {})):
                seen.add(id(tree))
                _check_tree(tree, size)
            numbers = values.get("vocabulary_")
            if numbers is not None and sorted(numbers.values()) != list(range(len(numbers))):
                raise DataError(
                    "a vocabulary's numbers are not those of its words: the file is broken or made to crash"
                )
            waiting += values.values()


def _check_tree(tree: Any, features: Any) -> None:
    """Refuse a tree whose nodes point outside it, or to other features than those of its estimator's input."""
    good = 0 < tree.node_count == tree.capacity and tree.n_features == features
    if good:  # else there are no such arrays
        left, right, feature = tree.children_left, tree.children_right, tree.feature
        inner = left != -1
        parents = np.flatnonzero(inner)  # children stand behind them, so that no path is a circle
        good = (
            np.array_equal(inner, right != -1)
            and bool(np.all((left[inner] > parents) & (left[inner] < len(left))))
            and bool(np.all((right[inner] > parents) & (right[inner] < len(left))))
            and bool(np.all((feature[inner] >= 0) & (feature[inner] < features)))
        )
    if not good:
        raise DataError("a decision tree's nodes point outside the tree: the file is broken or made to crash")


def save_pipeline(model: Any, path: Path) -> None:
    """Write a fitted pipeline as a skops file, the same pipeline always to the same bytes.

    skops names objects by their places in memory, and dates the members of its archive: here they are numbered in the
    order in which its schema names them, and have no date.
    """
    import skops.io

    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return match[1] + numbers.setdefault(match[2], str(len(numbers) + 1))

    with ZipFile(io.BytesIO(skops.io.dumps(model))) as before, ZipFile(path, "w") as after:
        # inside a string a quotation mark has a backslash before it: only keys look like these
        schema = re.sub(r'("__id__": |"file": ")(\d+)', number, before.read(SCHEMA).decode())
        members = {re.sub(r"^\d+", lambda name: numbers[name[0]], name): name for name in before.namelist()}
        for member in sorted(members):
            content = schema.encode() if member == SCHEMA else before.read(members[member])
            after.writestr(ZipInfo(member), content)
