"""scikit-learn pipelines over strings: opened safely, counted from token numbers where their vectoriser counts words.

A pipeline takes strings: an instance's tokens joined by ``joiner`` (a blank; nothing for character n-grams of Chinese).
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.instances import Instance
from eraser_hub.records.errors import DataError, UsageError, get_first_line
from eraser_hub.records.extras import need

from . import linear
from .model import Unit
from .objects import TokenModel

if TYPE_CHECKING:
    from eraser_hub.attribution.method import Method, Scores
    from eraser_hub.attribution.methods._captum import GradientMethod
    from eraser_hub.attribution.text import Text

    from .opening import Opening

# single characters that no vocabulary of words or n-grams holds: a word more, and no evidence
MASK, PAD = "�", "␀"
BLANK_SPLIT = "[^ ]+"
# patterns whose matches never reach over a blank nor depend on what is behind one
WORD_PATTERNS = (BLANK_SPLIT, r"\S+", r"(?u)\b\w\w+\b")
FILE, TOKENIZER = "model.skops", "tokenizer"  # in a model's folder
SCHEMA = "schema.json"  # of a skops archive
# what a random forest needs beyond scikit-learn's own types; its arrays are checked after opening
TREE = "sklearn.tree._tree.Tree"
MAX_ROWS, MAX_BATCH_WORDS = 4096, 1_000_000


class PipelineModel(TokenModel):
    """A fitted scikit-learn pipeline over strings.

    Args:
        pipeline: the pipeline, or a classifier that takes strings.
        uses_query: whether the query's tokens stand before the document's.
        joiner: what stands between two tokens.
        subwords: cuts strings into the sub-words that the pipeline takes; None: it takes the strings.
    """

    mask_token, pad_token = MASK, PAD

    def __init__(
        self, pipeline: Any, *, uses_query: bool = False, joiner: str = " ", subwords: Subwords | None = None
    ) -> None:
        super().__init__(uses_query)
        self.pipeline, self.joiner, self.subwords = pipeline, joiner, subwords
        self.steps = [step for _, step in getattr(pipeline, "steps", [("model", pipeline)])]
        self.description = type(self.steps[-1]).__name__
        self.label_names = tuple(map(str, pipeline.classes_))
        # features of sub-words are no words' or characters', to which coefficients could be traced
        if subwords is None and linear.keeps_features_apart(self.steps):
            self.provides = self.provides | {"coefficients"}

    def rows_for(self, size: int, batch_size: int) -> int:
        """Return how many inputs make a batch: they are small, so that the number of words in it bounds it."""
        return max(batch_size, min(MAX_ROWS, MAX_BATCH_WORDS // max(size, 1)))

    def forward(self, inputs: Sequence[Any]) -> Any:
        """Return the probabilities of a batch of texts."""
        texts = [self.joiner.join([*query, *self.get_tokens(numbers)]) for query, numbers in inputs]
        return self.pipeline.predict_proba(texts if self.subwords is None else self.subwords(texts))

    def supports(self, method: type[Method]) -> bool:
        """Return True if the model provides what a method needs, or has its closed form."""
        return super().supports(method) or (
            "coefficients" in self.provides
            and linear.find_gradient(method) is not None
            and linear.is_softmax_of_counts(self.steps)
        )

    def coefficients(self, texts: Sequence[Text]) -> list[Scores]:
        """Return each token's share of the weighted features."""
        return [linear.compute_coefficients(self.steps, *self._get_input(text)) for text in texts]

    def gradients(self, texts: Sequence[Text], method: GradientMethod) -> list[Scores]:
        """Return the scores of a gradient method in closed form."""
        return [
            linear.compute_gradients(self.steps, *self._get_input(text), method, text, self.notes) for text in texts
        ]

    def _get_input(self, text: Text) -> tuple[list[str], int, str, int]:
        """Return the tokens of a text, how many of them are the query's, the joiner, and the label's output column."""
        query = list(text.instance.query) if self.uses_query else []
        return [*query, *text.instance.tokens], len(query), self.joiner, self.column(text.label)


@dataclass(slots=True)
class Counted:
    """An instance as occurrences of features.

    Attributes:
        instance: the instance.
        features: int32 (occurrences,), ascending.
        tokens: int64 (occurrences,), the token of each; the query has one behind the last.
    """

    instance: Instance
    features: NDArray[np.int32]
    tokens: NDArray[np.int64]


class CountModel(PipelineModel):
    """A pipeline whose first step counts single words: the features of each token are found once."""

    def read(self, instance: Instance) -> Any:
        """Count the features of each token, and of the query."""
        query = " ".join(instance.query) if self.uses_query else ""
        counts = self.steps[0].transform([*instance.tokens, query]).tocoo()
        order, times = np.argsort(counts.col, kind="stable"), counts.data
        tokens, features = (np.repeat(each[order], times[order]) for each in (counts.row, counts.col))
        return Counted(instance, features.astype(np.int32), tokens.astype(np.int64))

    def cut(self, reading: Any, kept: NDArray[np.bool_], erase: str) -> Iterable[Sequence[Unit]]:
        """Yield the features of each erased variant; what masks or pads is none (:func:`wrap_pipeline`)."""
        whole = np.column_stack([kept, np.ones(len(kept), bool)])
        for flags in whole[:, reading.tokens]:
            features = reading.features[flags]
            # a bag does not know where a word stood
            key = hashlib.blake2b(features.tobytes(), digest_size=16).digest()
            yield (Unit(key, len(features), features),)

    def forward(self, inputs: Sequence[Any]) -> Any:
        """Return the probabilities of a batch of counts."""
        from scipy.sparse import csr_matrix

        counter, between, estimator = self.steps[0], self.steps[1:-1], self.steps[-1]
        offsets = np.cumsum([0, *map(len, inputs)])
        features = np.concatenate(inputs)
        shape = (len(inputs), len(counter.vocabulary_))
        counts = csr_matrix((np.ones(len(features), counter.dtype), features, offsets), shape=shape)
        counts.sum_duplicates()
        if counter.binary:
            counts.data.fill(1)
        for step in between:
            counts = step.transform(counts)
        return estimator.predict_proba(counts)


def wrap_pipeline(
    pipeline: Any, *, uses_query: bool = False, joiner: str = " ", subwords: Subwords | None = None
) -> PipelineModel:
    """Return a fitted pipeline as a model."""
    steps = [step for _, step in getattr(pipeline, "steps", ())]
    kind = PipelineModel
    if len(steps) > 1 and joiner == " " and subwords is None and type(steps[0]).__name__ == "CountVectorizer":
        counter = steps[0]
        single = counter.analyzer == "word" and tuple(counter.ngram_range) == (1, 1)
        plain = counter.tokenizer is None and counter.preprocessor is None and counter.token_pattern in WORD_PATTERNS
        if single and plain and not counter.transform([MASK, PAD]).nnz:
            kind = CountModel
    return kind(pipeline, uses_query=uses_query, joiner=joiner, subwords=subwords)


def open_folder(place: Path, facts: Mapping[str, Any], settings: Opening) -> PipelineModel:
    """Open the pipeline in a model's folder, or in a file."""
    need("sklearn", "skops")
    file = place if place.is_file() else place / FILE
    longest = facts.get("longest")
    subwords = None if longest is None else open_subwords(file.parent / TOKENIZER, longest)
    joiner = facts.get("joiner")
    return wrap_pipeline(
        load_pipeline(file, settings.trust_pickle),
        uses_query=bool(settings.query),
        joiner=" " if joiner is None else joiner,
        subwords=subwords,
    )


def takes_strings(model: Any) -> bool:
    """Return True for a scikit-learn classifier over strings, False for one over token lists.

    Raises:
        DataError: one of scikit-learn's own that takes neither, or is not fitted.
    """
    for example in (["a", "b"], "a b"):
        try:
            model.predict_proba([example])
        except Exception:  # a vectoriser raises what its own splitting of the text raises
            continue
        return isinstance(example, str) and hasattr(model, "classes_")
    if type(model).__module__.startswith("sklearn."):
        check_takes_strings(model, None)
    return False


def check_takes_strings(model: Any, path: Path | None) -> None:
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


# --- files ------------------------------------------------------------------------------------------------------------


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
        model = _load_skops(path)
    elif path.suffix in (".joblib", ".pkl", ".pickle"):
        if not trust_pickle:
            message = "a pickle runs code when it is opened: say `trust_pickle` if you trust its source, "
            raise UsageError(message + "or save the model with skops", file=path)
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


def _load_skops(path: Path) -> Any:
    """Open a skops file that unpacks to a bounded size, and holds types that can be checked."""
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
        unknown = [name for name in skops.io.get_untrusted_types(file=path) if name != TREE]
        if unknown:
            message = f"expected scikit-learn's own types alone, found {', '.join(sorted(unknown)[:5])}: not opened, "
            raise DataError(message + "since opening it would run that code", file=path)
        model = skops.io.load(path, trusted=[TREE])
    except DataError:
        raise
    except Exception as error:  # skops raises many kinds on a broken file
        raise DataError(f"not a readable skops file: {get_first_line(error)}", file=path) from error
    return model


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


# --- sub-words, as Carton et al. (2020) count -------------------------------------------------------------------------


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
