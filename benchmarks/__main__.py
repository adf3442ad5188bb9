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


def gather() -> Path:
    """Join the results of all benchmarks into RESULTS.md."""
    parts = [
        "# Measurements\n\nWritten by `make bench`. "
        "Both sides of every ratio ran alternately, in one run, on the machine that is named.\n"
    ]
    for name in NAMES:
        part = FOLDER / f"results_{name}.md"
        if part.exists():
            parts.append(part.read_text(encoding="utf-8").strip() + "\n")
    target = FOLDER / "RESULTS.md"
    target.write_text("\n".join(parts), encoding="utf-8")
    return target


def main(names: list[str]) -> int:
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        print(f"expected names of benchmarks ({', '.join(NAMES)}), found {', '.join(unknown)}", file=sys.stderr)
        return 2
    failed = []
    for name in names or NAMES:
        print(f"== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], cwd=FOLDER.parent, check=False).returncode:
            failed.append(name)
    print(f"wrote {gather()}")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
