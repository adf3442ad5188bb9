"""Texts as the sub-words of a tokenizer, for pipelines that count those (Carton 2020's linear and forest models)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eraser_hub.records.errors import DataError, first_line
from eraser_hub.records.extras import need


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
        """Each text's sub-words, a blank between; the padding is a word like any other."""
        rows = self.tokenizer(list(texts), padding="max_length", truncation=True, max_length=self.longest)["input_ids"]
        return [" ".join(self.tokenizer.convert_ids_to_tokens(row)) for row in rows]


def subwords_of(tokenizer: str | Path, longest: int) -> Subwords:
    """Sub-words by the tokenizer of a folder or Hub id.

    Raises:
        DataError: it cannot be opened; ``transformers`` is missing.
    """
    need("transformers")
    import transformers

    try:
        return Subwords(transformers.AutoTokenizer.from_pretrained(tokenizer, trust_remote_code=False), longest)
    except Exception as error:  # transformers raises many kinds; its first line names what is missing
        words = f"cannot open the tokenizer: {first_line(error)}; without a network name a folder"
        raise DataError(words, argument="tokenizer", rule="model", file=tokenizer) from error
