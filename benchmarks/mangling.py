"""Quotes as language models spoil them: the same words to a reader, a little wrong, or invented."""

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


def _typos(text: str, chance: random.Random) -> str:
    letters = list(text)
    places = [at for at, letter in enumerate(letters) if letter.isalpha()]
    for at in chance.sample(places, max(1, len(places) // 25)):
        letters[at] = chance.choice("abcdefghijklmnopqrstuvwxyz")
    return "".join(letters)


def _word_changed(change: Callable[[list[str], int], None]) -> Callable[[str, random.Random], str]:
    def changed(text: str, chance: random.Random) -> str:
        words = text.split(" ")
        if len(words) > 7:  # an inner word; of a short quote any word is much
            change(words, chance.randrange(2, len(words) - 2))
        return " ".join(words)

    return changed


# the same words to a reader
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
# a little wrong
ERRORS: dict[str, Callable[[str, random.Random], str]] = {
    "typos in 4 % of letters": _typos,
    "a word left out": _word_changed(lambda words, at: words.pop(at)),  # type: ignore[arg-type, return-value]
    "a word put in": _word_changed(lambda words, at: words.insert(at, "very")),
    "a word exchanged": _word_changed(lambda words, at: words.__setitem__(at, "something")),
}
