"""scikit-learn pipelines as models: opened safely, run on token ids where their vectoriser counts words.

A pipeline takes strings: an instance's tokens joined by ``joiner`` (a blank; nothing for character n-grams of Chinese).
When its first step is a ``CountVectorizer`` of single words split on blanks, erased inputs are counted from token ids
directly, which gives the same matrix without making and splitting strings.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from eraser_hub.conversion.download import FREE_BYTES, MAX_MEMBERS, get_max_unpacked_bytes
from eraser_hub.records.errors import DataError, UsageError, get_first_line
from eraser_hub.records.extras import need

from ..adapter import Adapter, Encoded, View
from ..instances import Instance
from ..open import TOKENIZER, Opener, Opening
from ._linear import LinearPipeline, keeps_features_apart, split_at_blanks, token_scores
from .plain import CutTokens

# single characters that no vocabulary of words or n-grams holds: a word more, and no evidence
MASK, PAD = "�", "␀"
BLANK_SPLIT = "[^ ]+"
# of a CountVectorizer whose words are those between blanks
COUNTED: dict[str, str | None] = {"analyzer": "word", "token_pattern": BLANK_SPLIT}
COUNTED |= dict.fromkeys(("stop_words", "strip_accents", "preprocessor", "tokenizer"))
FILE = "model.skops"  # in a model's folder
SCHEMA = "schema.json"  # of a skops archive
# what a random forest needs beyond scikit-learn's own types; its arrays are checked after opening
TREE = "sklearn.tree._tree.Tree"


@dataclass(frozen=True, slots=True)
class Subwords:
    """Cuts texts into sub-words, special tokens and padding up to ``longest`` included, as Carton 2020's code does.

    Attributes:
        tokenizer: of ``transformers``.
        longest: places of every text; what does not fit is cut off.
    """

    tokenizer: Any
    longest: int

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """Return each text's sub-words, joined by blanks; padding is a word like any other."""
        rows = self.tokenizer(list(texts), padding="max_length", truncation=True, max_length=self.longest)["input_ids"]
        return [" ".join(self.tokenizer.convert_ids_to_tokens(row)) for row in rows]


def open_subwords(tokenizer: str | Path, longest: int) -> Subwords:
    """Open the tokenizer of a folder or Hub id.

    Raises:
        DataError: it cannot be opened; ``transformers`` is missing.
    """
    need("transformers")
    import transformers

    try:
        return Subwords(transformers.AutoTokenizer.from_pretrained(tokenizer, trust_remote_code=False), longest)
    except Exception as error:  # transformers raises many kinds; its first line names what is missing
        message = f"cannot open the tokenizer: {get_first_line(error)}; without a network name a folder"
        raise DataError(message, argument="tokenizer", file=tokenizer) from error


def load_pipeline(path: Path, trust_pickle: bool = False) -> Any:
    """Open a fitted pipeline.

    A skops file is opened without running code; a joblib or pickle file runs whatever it holds, so it needs
    ``trust_pickle``.

    Raises:
        DataError: an unknown ending, a pickle without trust, a skops file that holds other than scikit-learn's types,
            trees whose nodes point outside themselves, something without ``predict_proba``, a model that is not fitted
            or takes no strings.
    """
    if path.suffix == ".skops":
        import skops.io

        try:
            check_archive(path)
            unknown = [name for name in skops.io.get_untrusted_types(file=path) if name != TREE]
            if unknown:
                raise DataError(
                    f"expected scikit-learn's own types alone, found {', '.join(sorted(unknown)[:5])}: not opened, "
                    "since opening it would run that code",
                    file=path,
                )
            model = skops.io.load(path, trusted=[TREE])
        except DataError:
            raise
        except Exception as error:  # skops raises many kinds on a broken file
            message = f"not a readable skops file: {get_first_line(error)}"
            raise DataError(message, file=path) from error
    elif path.suffix in (".joblib", ".pkl", ".pickle"):
        if not trust_pickle:
            raise UsageError(
                "a pickle runs code when it is opened: say `trust_pickle` if you trust its source, "
                "or save the model with skops",
                file=path,
            )
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
    for tree in find_trees(model):
        check_tree(tree, path)
    check_takes_strings(model, path)
    return model


def check_takes_strings(model: Any, path: Path | None) -> None:
    """Refuse a model that is not fitted, or that takes no strings, such as a classifier without its vectoriser."""
    from sklearn.exceptions import NotFittedError

    name = type(getattr(model, "steps", [("", model)])[-1][1]).__name__
    try:
        model.predict_proba(["a b"])
    except NotFittedError as error:
        message = f"expected a fitted model, found {name} before its fit"
        raise DataError(message, file=path) from error
    except Exception as error:  # a model raises what its own reading of the input raises
        message = f"expected a pipeline over strings (a vectoriser, then a classifier), found {name}"
        raise DataError(f"{message}: {get_first_line(error).rstrip(':')}", file=path) from error


def check_archive(path: Path) -> None:
    """Refuse a skops file that unpacks to immense data: its directory tells the sizes, and no more is unpacked."""
    packed = path.stat().st_size
    with ZipFile(path) as archive:
        sizes = {member.filename: member.file_size for member in archive.infolist()}
    total = sum(sizes.values())
    if len(sizes) > MAX_MEMBERS or total > get_max_unpacked_bytes(packed) or sizes.get(SCHEMA, 0) > FREE_BYTES:
        message = f"unpacks to {total:,} bytes, which no model does ({packed:,} packed)"
        raise DataError(message, file=path)


def save_pipeline(model: Any, path: Path) -> None:
    """Write a fitted pipeline as a skops file, the same pipeline always to the same bytes.

    skops names objects by their places in memory, and dates the members of its archive: here they are numbered in the
    order in which its schema names them, and have no date.
    """
    import skops.io

    numbers: dict[str, str] = {}

    def numbered(match: re.Match[str]) -> str:
        return match[1] + numbers.setdefault(match[2], str(len(numbers) + 1))

    with ZipFile(io.BytesIO(skops.io.dumps(model))) as before, ZipFile(path, "w") as after:
        # inside a string a quotation mark has a backslash before it: only keys look like these
        schema = re.sub(r'("__id__": |"file": ")(\d+)', numbered, before.read(SCHEMA).decode())
        members = {re.sub(r"^\d+", lambda name: numbers[name[0]], name): name for name in before.namelist()}
        for member in sorted(members):
            content = schema.encode() if member == SCHEMA else before.read(members[member])
            after.writestr(ZipInfo(member), content)


def find_trees(model: Any) -> list[Any]:
    """Return the node arrays of every decision tree in a model, wherever an estimator holds it."""
    trees, seen, waiting = list[Any](), set[int](), [model]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if f"{type(part).__module__}.{type(part).__qualname__}" == TREE:
            trees.append(part)
        elif isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, (list, tuple, set)) or (isinstance(part, np.ndarray) and part.dtype == object):
            waiting += list(np.ravel(part)) if isinstance(part, np.ndarray) else part
        else:
            waiting += getattr(part, "__dict__", {}).values()
    return trees


def check_tree(tree: Any, path: Path) -> None:
    """Refuse a tree whose nodes point outside it: scikit-learn follows them without looking."""
    nodes, left, right, feature = tree.node_count, tree.children_left, tree.children_right, tree.feature
    inner = left != -1
    parents = np.flatnonzero(inner)  # children stand behind them, so that no path is a circle
    good = (
        len(left) == len(right) == len(feature) == nodes
        and bool(np.all(inner == (right != -1)))
        and bool(np.all((left[inner] > parents) & (left[inner] < nodes)))
        and bool(np.all((right[inner] > parents) & (right[inner] < nodes)))
        and bool(np.all((feature[inner] >= 0) & (feature[inner] < tree.n_features)))
    )
    if not good:
        message = "a decision tree's nodes point outside the tree: the file is broken or made to crash"
        raise DataError(message, file=path)


def predicts_on_strings(model: Any) -> bool:
    """Return True for a scikit-learn classifier that predicts on strings and not on token lists.

    One of scikit-learn's own that predicts on neither is refused where it is opened.
    """
    if not callable(getattr(model, "get_params", None)):
        return False
    for example in (["a", "b"], "a b"):
        try:
            model.predict_proba([example])
        except Exception:  # a vectoriser raises what its own splitting of the text raises
            continue
        return isinstance(example, str) and hasattr(model, "classes_")
    return type(model).__module__.startswith("sklearn.")


@dataclass(slots=True)
class _Bag(Encoded):
    instance: Instance
    ids: NDArray[np.int32]  # of every token, equal for equal words, -1 for words that the vocabulary lacks
    query: NDArray[np.int32]
    mask: int
    pad: int
    order: NDArray[np.int64]  # positions of the known tokens by rising id: an erased input is cut from it in order
    sorted: NDArray[np.int32]

    def alike(self, positions: NDArray[np.int64]) -> bytes:
        # a bag does not know where a word stood
        ids = self.ids[positions]
        return (np.sort(ids) if len(ids) > 1 else ids).tobytes()

    def view(self, kept: NDArray[np.bool_], erase: str) -> View:
        ids = self.sorted[kept[self.order]]
        substitute = self.mask if erase == "mask" else self.pad
        more = [self.query[self.query >= 0]] if len(self.query) else []
        if erase != "remove" and substitute >= 0:
            more.append(np.full(len(kept) - np.count_nonzero(kept), substitute, dtype=np.int32))
        if more:
            ids = np.sort(np.concatenate([ids, *more]))
        return View((hashlib.blake2b(ids.tobytes(), digest_size=16).digest(),), (len(ids),), ids)


class PipelineModel(Adapter):
    """A fitted scikit-learn pipeline over strings."""

    vocabulary: dict[str, int] | None = None

    def __init__(
        self,
        pipeline: Any,
        *,
        uses_query: bool = False,
        joiner: str = " ",
        subwords: Subwords | None = None,
    ) -> None:
        super().__init__()
        self.subwords = subwords
        self.pipeline, self.uses_query, self.joiner = pipeline, uses_query, joiner
        self.steps = [step for _, step in getattr(pipeline, "steps", [("model", pipeline)])]
        self.description = type(self.steps[-1]).__name__
        self.label_names = tuple(map(str, pipeline.classes_))
        vectoriser = self.steps[0]
        counts = len(self.steps) > 1 and type(vectoriser).__name__ == "CountVectorizer" and joiner == " "
        counts = counts and subwords is None and tuple(vectoriser.ngram_range) == (1, 1)
        if counts and all(getattr(vectoriser, name) == value for name, value in COUNTED.items()):
            self.vocabulary = vectoriser.vocabulary_

    def encode(self, instance: Instance) -> Encoded:
        """Cut the instance into the units that the model reads."""
        query = list(instance.query) if self.uses_query else []
        if self.vocabulary is None:
            return CutTokens(instance, instance.tokens, query, MASK, PAD)
        tokens = instance.tokens
        places, words = split_at_blanks(tokens)
        ids = self._ids(words)
        order = np.argsort(ids, kind="stable")[np.count_nonzero(ids < 0) :]
        mask, pad = self._ids([MASK, PAD]).tolist()
        # tokens of several words or none are unlike all others
        own = ids if words == tokens else np.arange(len(tokens), dtype=np.int32)
        return _Bag(instance, own, self._ids(split_at_blanks(query)[1]), mask, pad, places[order], ids[order])

    def _ids(self, tokens: Sequence[str]) -> NDArray[np.int32]:
        vocabulary = self.vocabulary or {}
        lower = self.steps[0].lowercase
        return np.asarray([vocabulary.get(token.lower() if lower else token, -1) for token in tokens], dtype=np.int32)

    def rows_for(self, size: int, batch_size: int) -> int:
        """Return the number of units in a batch."""
        # strings and counts are small: what bounds a batch is the number of words in it
        return max(batch_size, min(4096, 1_000_000 // max(size, 1)))

    def forward(self, units: Sequence[tuple[View, int]]) -> NDArray[np.float64]:
        """Return the probabilities of a batch."""
        model: Any = self.pipeline
        inputs: Any
        if self.vocabulary is None:
            inputs = [self.joiner.join([*view.data[1], *view.data[0]]) for view, _ in units]
            inputs = inputs if self.subwords is None else self.subwords(inputs)
        else:  # word ids are counted as the vectoriser does
            from scipy.sparse import csr_matrix

            bags, vectoriser = [view.data for view, _ in units], self.steps[0]
            offsets = np.concatenate([[0], np.cumsum([len(bag) for bag in bags])])
            indices = np.concatenate([*bags, np.zeros(0, np.int32)]).astype(np.int32)
            shape = (len(bags), len(self.vocabulary))
            inputs = csr_matrix((np.ones(len(indices), dtype=vectoriser.dtype), indices, offsets), shape=shape)
            inputs.sum_duplicates()
            if vectoriser.binary:
                inputs.data.fill(1)
            for step in self.steps[1:-1]:
                inputs = step.transform(inputs)
            model = self.steps[-1]
        return np.asarray(model.predict_proba(inputs))

    @property
    def provides(self) -> frozenset[str]:  # type: ignore[override]  # the pipeline's steps decide
        """Capabilities that methods may ask of the model."""
        # features of sub-words are no words' or characters', to which coefficients could be traced
        linear = self.subwords is None and keeps_features_apart(self.steps)
        # softmax or sigmoid of a linear function of token counts (no tf-idf norm between)
        names = [type(step).__name__ for step in self.steps]
        sums_counts = linear and names == ["CountVectorizer", "LogisticRegression"] and not self.steps[0].binary
        return frozenset(["probabilities", *["coefficients"] * linear, *["gradients"] * sums_counts])

    def scores(
        self, method: str, encoded: Sequence[Encoded], targets: Sequence[int], steps: int
    ) -> list[NDArray[np.float64]]:
        """Compute token scores by a method that looks inside the model."""
        pipeline = LinearPipeline(self.steps, self.joiner, self.uses_query, self.choices, self.notes)
        return [
            token_scores(pipeline, one.instance, self.column(target), method, steps)
            for one, target in zip(encoded, targets, strict=True)
        ]


class PipelineOpener(Opener):
    """A fitted pipeline over strings."""

    @classmethod
    def opens(cls, opening: Opening) -> bool:
        """Return True if the model is of this kind."""
        if opening.path is None:
            return predicts_on_strings(opening.model)
        return "network" not in opening.facts and ((opening.path / FILE).is_file() or opening.path.is_file())

    @classmethod
    def open(cls, opening: Opening) -> Adapter:
        """Return the model behind the one interface."""
        asks, facts = bool(opening.uses_query), opening.facts
        if opening.path is None:
            check_takes_strings(opening.model, None)
            return PipelineModel(opening.model, uses_query=asks)
        need("sklearn", "skops")
        longest, file = facts.get("longest"), opening.path / FILE
        file = file if file.is_file() else opening.path
        subwords = None if longest is None else open_subwords(file.parent / TOKENIZER, longest)
        pipeline = load_pipeline(file, opening.trust_pickle)
        return PipelineModel(pipeline, uses_query=asks, joiner=facts.get("joiner", " "), subwords=subwords)

    @classmethod
    def embeds(cls, opening: Opening) -> bool:
        """Return False: a pipeline has no embeddings of tokens."""
        return False
