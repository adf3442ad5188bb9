"""Check that all files name one version, and that a release's tag fits it: ``python -m tools.release_check``.

With ``--tag v1.0.0``, as the release workflow calls it, the tag has to name that version, the first section of
CHANGELOG.md has to be that version's and carry a date, and CITATION.cff has to be dated alike. Without a tag that
section may be ``(unreleased)``; CITATION.cff then has no date. The exit status is 1 where something disagrees.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = "eraser_hub/version.py"
# the version stands here too: a Space and a citation have no package to ask
PLACES = {
    VERSION: r'^__version__ = "(.*)"$',
    "metrics/errors.py": r'^VERSION = "(.*)"$',
    "metrics/cards/perturbation_map.md": r"\|version:([^']*)'$",
    "CITATION.cff": r"^version: (.*)$",
    "CHANGELOG.md": r"^## (\S+)",
}
DATE = r"\d{4}-\d\d-\d\d"


def first_match(path: Path, pattern: str) -> str:
    """Return the first group of a pattern in a file, or an empty text."""
    found = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else ""


def disagreements(root: Path = ROOT, tag: str | None = None) -> list[str]:
    """Return a line for each file that disagrees with `eraser_hub/version.py` or with the tag; none if all agree."""
    named = {name: first_match(root / name, pattern) for name, pattern in PLACES.items()}
    version = named[VERSION]
    found = [f"{name}: expected version {version}, found {it!r}" for name, it in named.items() if it != version]
    if tag is not None and tag != f"v{version}":
        found.append(f"{VERSION}: expected version {tag.removeprefix('v')} of the tag {tag}, found {version!r}")
    heading = first_match(root / "CHANGELOG.md", "^## (.*)$")
    dated = re.search(rf" \(({DATE if tag else f'{DATE}|unreleased'})\)$", heading)
    if dated is None:
        found.append(f"CHANGELOG.md: expected ## {version} (YYYY-MM-DD), found ## {heading}")
    cited = first_match(root / "CITATION.cff", "^date-released: (.*)$").strip("'\"") or "unreleased"
    if dated and cited != dated[1]:
        found.append(f"CITATION.cff: expected date-released as in CHANGELOG.md, {dated[1]}, found {cited}")
    return found


def main() -> int:
    """Print what disagrees, or the version."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tag", help="the tag of the release, such as v1.0.0")
    found = disagreements(tag=parser.parse_args().tag)
    print("\n".join(found) if found else f"{first_match(ROOT / VERSION, PLACES[VERSION])}: all files agree")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
