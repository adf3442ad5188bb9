"""Run the benchmarks, each in a process of its own (peak memory is a process's), and gather benchmarks/RESULTS.md.

python -m benchmarks                     all of them
python -m benchmarks conversion explain  these two; the others' results stay as they were
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
NAMES = ("conversion", "explain", "peers", "inference")


def main(names: list[str]) -> int:
    """Run the benchmarks of these names; return 1 where one failed."""
    if unknown := sorted(set(names) - set(NAMES)):
        print(f"expected names of benchmarks ({', '.join(NAMES)}), found {', '.join(unknown)}", file=sys.stderr)
        return 2
    failed = []
    for name in names or NAMES:
        print(f"== {name}", flush=True)
        module = ["benchmarks.explain", "peers"] if name == "peers" else [f"benchmarks.{name}"]
        if subprocess.run([sys.executable, "-m", *module], cwd=FOLDER.parent, check=False).returncode:
            failed.append(name)
    head = (
        "Written by `make bench`. Both sides of every ratio ran alternately, in one run, on the machine that is named."
    )
    pages = [FOLDER / f"results_{name}.md" for name in NAMES]
    parts = ["# Measurements", head, *(page.read_text("utf-8").strip() for page in pages if page.exists())]
    (FOLDER / "RESULTS.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
