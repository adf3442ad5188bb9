"""scikit-learn pipelines over strings: opened safely, counted from token numbers where their vectoriser counts words.

A pipeline takes strings: an instance's tokens joined by ``joiner`` (a blank; nothing for character n-grams of Chinese).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.instances import Instance
from eraser_hub.records.errors import DataError, get_first_line
from eraser_hub.records.extras import need

from . import linear
from .inputs import ModelInput
from .loading import find_loading_options
from .objects import TokenModel
from .skops_files import check_takes_strings, load_pipeline
from .skops_files import save_pipeline as save_pipeline

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
MAX_ROWS, MAX_BATCH_WORDS = 4096, 1_000_000
HASHED_ROWS = 64  # at a time: more would not stay in the processor's cache


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
        texts = [self.joiner.join([*query, *text]) for query, text in self.get_texts(inputs)]
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


@dataclass(slots=True, eq=False)
class Counted:
    """An instance as occurrences of features; the query stands behind the last token.

    Attributes:
        instance: the instance.
        features: int32 (occurrences,), ascending.
        tokens: int64 (occurrences,), the token of each.
        sums: float64 (tokens, 4), of each token's features: three random numbers, and their count.
    """

    instance: Instance
    features: NDArray[np.int32]
    tokens: NDArray[np.int64]
    sums: NDArray[np.float64]


class CountModel(PipelineModel):
    """A pipeline whose first step counts single words: the features of each token are found once."""

    def __init__(self, pipeline: Any, **options: Any) -> None:
        super().__init__(pipeline, **options)
        # whole numbers below 2**30: the sum of any text's is exact
        random = np.random.default_rng(0).integers(1 << 30, size=(len(self.steps[0].vocabulary_), 3))
        self._random = np.column_stack([random, np.ones(len(random))])

    def read(self, instance: Instance) -> Any:
        """Count the features of each token, and of the query."""
        query = " ".join(instance.query) if self.uses_query else ""
        counts = self.steps[0].transform([*instance.tokens, query]).tocoo()
        order = np.argsort(counts.col, kind="stable")
        tokens, features = (np.repeat(each[order], counts.data[order]) for each in (counts.row, counts.col))
        return Counted(instance, features.astype(np.int32), tokens.astype(np.int64), counts.tocsr() @ self._random)

    def cut(self, reading: Any, kept: NDArray[np.bool_], erase: str) -> Iterable[Sequence[ModelInput]]:
        """Yield the flags of each erased variant; what masks or pads is no feature (:func:`wrap_pipeline`).

        Variants of the same words are one: a bag does not know where a word stood.
        """
        for start in range(0, len(kept), HASHED_ROWS):
            block = np.pad(kept[start : start + HASHED_ROWS], ((0, 0), (0, 1)), constant_values=True)  # the query
            for flags, sums in zip(block, block @ reading.sums, strict=True):
                yield (ModelInput(sums.tobytes(), int(sums[-1]), (reading, flags)),)

    def forward(self, inputs: Sequence[Any]) -> Any:
        """Return the probabilities of a batch of counts."""
        from scipy.sparse import csr_matrix

        counter, between, estimator = self.steps[0], self.steps[1:-1], self.steps[-1]
        bags = [reading.features[flags[reading.tokens]] for reading, flags in inputs]
        features, shape = np.concatenate(bags), (len(bags), len(counter.vocabulary_))
        ones, offsets = np.ones(len(features), counter.dtype), np.cumsum([0, *map(len, bags)])
        counts = csr_matrix((ones, features, offsets), shape=shape)
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
        check_takes_strings(model)
    return False


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
        options = find_loading_options(str(tokenizer), trust_remote_code=False)
        return Subwords(transformers.AutoTokenizer.from_pretrained(tokenizer, **options), longest)
    except Exception as error:  # transformers raises many kinds; its first line names what is missing
        message = f"cannot open the tokenizer: {get_first_line(error)}; without a connection, name a folder"
        raise DataError(message, argument="tokenizer", file=tokenizer) from error
