"""The project's files in another folder: what changes them, or builds of them, leaves the other tests' alone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def listed_files(*patterns: str) -> list[str]:
    """Return the paths that git tracks or would track, relative to the root; links are listed, not followed."""
    command = ["git", "ls-files", "-z", "-co", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    return sorted({name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).exists()})


def copy_source(place: Path) -> None:
    """Copy what `git clone` gives, with changes and new files that are not committed yet; links stay links."""
    for name in listed_files():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place / name, follow_symlinks=False)
