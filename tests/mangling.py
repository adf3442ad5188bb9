"""Quotes as language models spoil them: the same words to a reader."""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Callable


def _detokenised(text: str, _: random.Random) -> str:
    text = re.sub(r" (?=[.,;:!?)\]%]|n't\b|'(?:s|re|ve|ll|d|m)\b)", "", text)
    return re.sub(r"(?<=[(\[$]) ", "", text)


def _curly(text: str, _: random.Random) -> str:
    return text.replace("``", "“").replace("''", "”").replace("'", "’")


def _straight(text: str, _: random.Random) -> str:
    return text.replace("``", '"').replace("''", '"').replace("’", "'")


NORMALISATIONS: dict[str, Callable[[str, random.Random], str]] = {
    "as it is": lambda text, _: text,
    "capitals": lambda text, _: text.upper(),
    "title case": lambda text, _: text.title(),
    "blanks closed": _detokenised,
    "blanks doubled": lambda text, _: text.replace(" ", "  "),
    "line breaks": lambda text, chance: "".join("\n" if c == " " and chance.random() < 0.2 else c for c in text),
    "no-break spaces": lambda text, _: text.replace(" ", "\u00a0"),
    "curly quotes": _curly,
    "straight quotes": _straight,
    "dashes": lambda text, _: text.replace("--", "—").replace("-", "‑"),
    "full width": lambda text, _: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),
    "decomposed": lambda text, _: unicodedata.normalize("NFD", text),
    "soft hyphens": lambda text, _: re.sub(r"(?<=[a-z]{3})(?=[a-z]{3})", "\u00ad", text),
    "wrapped": lambda text, _: f'"{text}"',
    "trailing dots": lambda text, _: f"{text}...",
}
