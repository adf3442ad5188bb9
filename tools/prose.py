"""The phrases that the project's prose does without: ``python -m tools.prose [FILE ..]`` names each place.

Documents, cards and (by `faults`) any other text are held to plain technical English: subject, verb, object. A phrase
is refused where a plain one says the same: "Rows without gold are skipped and counted", not "what has no gold is left
out, which is said".
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# phrase -> what to write instead
PHRASES = {
    r"(?:(?:it|that|which) )?(?:is|are|was|were) said": "name who reports it: `score` prints, reports, counts",
    r"(?:is|are|was|were) told": "prints, reports, names",
    r"\bwhoever\b": "you, users who",
    r"so that nobody": "so that no one, or the reason itself",
    r"as it came\b": "unchanged",
    r"a silence mended": "a missing message added",
    r"in the place of": "instead of",
    r"for want of": "without",
    r"\bas yet\b": "still, so far",
    r"has the last word": "wins, takes precedence",
    r"\bpaper 00\d": "the authors and the year",
    r"out of (?:its|their|the) (?:docstring|declaration)s?": "generated from",
}
# a clause as the subject of a sentence
INVERTED = re.compile(
    r"(?:^|[.:;] )(?:What|Who) (?!(?:is|are|does|do|did|can|could|makes|should)\b)[^.?!]*[.;:]", re.MULTILINE
)
_REFUSED = re.compile("|".join(f"(?:{phrase})" for phrase in PHRASES), re.IGNORECASE)
_CODE = re.compile(r"^(````?).*?^\1$|`[^`\n]*`|^---\n.*?^---$|<!--.*?-->", re.MULTILINE | re.DOTALL)
CARDS = ("metrics/cards", "datasets_scripts/cards")


def faults(text: str) -> Iterator[tuple[int, str]]:
    """Find the refused phrases of a text.

    Args:
        text: Markdown, or a docstring; code in it is not read.

    Yields:
        The line, from 1 on, and the words.
    """
    prose = _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    joined = re.sub(
        r"(?<=\S)\n(?=\s*[^\s|#>*-])", " ", prose
    )  # of the same length: a phrase may go on in the next line
    found = [*_REFUSED.finditer(joined), *_sentences(joined)]
    for match in sorted(found, key=lambda match: match.start()):
        yield text.count("\n", 0, match.start()) + 1, " ".join(match[0].split())


def _sentences(text: str) -> Iterator[re.Match[str]]:
    """The sentences whose subject is a clause; headings, questions and lists of links are none."""
    for match in INVERTED.finditer(text):
        line = text[text.rfind("\n", 0, match.start() + 1) + 1 : match.start() + 1]
        if not line.startswith(("#", "|")):
            yield match


def documents() -> list[Path]:
    """Return the pages that are held to it; of the changelog only what is not released."""
    names = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")]
    pages = [path for path in sorted((ROOT / "docs").glob("*.md")) if path.name not in ("reference.md", "commands.md")]
    return [*names, *pages, *(path for folder in CARDS for path in sorted((ROOT / folder).glob("*.md")))]


def unreleased() -> str:
    """Return the part of the changelog that is not released."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    return "".join(part for part in re.split(r"(?m)^(?=## )", text) if "(unreleased)" in part.partition("\n")[0])


def main() -> None:
    """Print the faults of files, or of all documents."""
    paths = list(map(Path, sys.argv[1:])) or documents()
    lines = [f"{path}:{line}: {words}" for path in paths for line, words in faults(path.read_text("utf-8"))]
    lines += [] if sys.argv[1:] else [f"CHANGELOG.md, unreleased: {words}" for _, words in faults(unreleased())]
    print("\n".join(lines) or "no fault")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
