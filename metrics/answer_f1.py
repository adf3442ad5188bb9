"""F1 of a predicted answer against gold answers: by words for English, by characters for Chinese.

English follows SQuAD (Rajpurkar et al., 2016): lower case, punctuation and the articles a, an, the removed, words
between blanks, F1 of the two bags of words. Chinese follows CMRC 2018 (Cui et al., 2019) and DuReader: lower case,
punctuation removed, each Chinese character a unit of its own and each run of other letters one unit, and F1 of the
longest common run of units.
"""

from __future__ import annotations

import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from .issues import InputError

_ARTICLES = frozenset(("a", "an", "the"))
_ASCII_PUNCTUATION = frozenset(string.punctuation)
LANGUAGES = ("en", "zh")


def is_chinese(character: str) -> bool:
    """Return True if a character is a Chinese one (CJK ideographs and their extensions)."""
    code = ord(character)
    return 0x3400 <= code <= 0x9FFF or 0xF900 <= code <= 0xFAFF or 0x20000 <= code <= 0x323AF


def detect_language(*texts: str) -> str:
    """Return "zh" if any of the texts contains a Chinese character, else "en"."""
    return "zh" if any(is_chinese(character) for text in texts for character in text) else "en"


def split_english_words(answer: str) -> list[str]:
    """Return the words of an answer after SQuAD's normalisation.

    >>> split_english_words("The Normans' north.")
    ['normans', 'north']
    """
    kept = "".join(character for character in answer.lower() if character not in _ASCII_PUNCTUATION)
    return [word for word in kept.split() if word not in _ARTICLES]


def split_chinese_units(answer: str) -> list[str]:
    """Return Chinese characters one by one and other letters and digits in runs, without punctuation and blanks.

    >>> split_chinese_units("在2008年，NBA！")
    ['在', '2008', '年', 'nba']
    """
    units: list[str] = []
    run = ""
    for character in answer.lower():
        word = not character.isspace() and unicodedata.category(character)[0] not in "PSCZ"
        if word and not is_chinese(character):
            run += character
            continue
        if run:
            units.append(run)
            run = ""
        if word:
            units.append(character)
    return [*units, run] if run else units


def answer_f1(predicted: str, golds: str | Sequence[str], language: str | None = None) -> float:
    """Return the best F1 of a predicted answer over the gold answers.

    Args:
        predicted: the answer; "" for none.
        golds: one gold answer or several; "" (or none at all) where the question has no answer, and then a prediction
            without words scores 1 and any other 0.
        language: "en", "zh", or None: Chinese if a text holds a Chinese character.

    Returns:
        In [0, 1].

    Raises:
        ValueError: an unknown language.

    >>> answer_f1("in the north", ["north of France", "the north"])
    0.6666666666666666
    >>> answer_f1("北京市", "北京")
    0.8
    """
    golds = [golds] if isinstance(golds, str) else (list(golds) or [""])
    if language is None:
        language = detect_language(predicted, *golds)
    if language not in LANGUAGES:
        raise InputError(
            f"expected one of {', '.join(LANGUAGES)} or None, found {language!r}", "option-value", "language"
        )
    return max(_f1(predicted, gold, language) for gold in golds)


def _f1(predicted: str, gold: str, language: str) -> float:
    units = split_chinese_units if language == "zh" else split_english_words
    ours, theirs = units(predicted), units(gold)
    if not ours or not theirs:
        return float(ours == theirs)
    if language == "zh":
        common = SequenceMatcher(None, ours, theirs, autojunk=False).find_longest_match().size
    else:
        common = (Counter(ours) & Counter(theirs)).total()
    return 2 * common / (len(ours) + len(theirs))
