"""Worker processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

STARTS_A_POOL = """
import os
from eraser_hub.records.processes import make_process_pool
if __name__ == "__main__":
    with make_process_pool(2) as pool:
        here = pool.submit(os.getcwd).result()
        print(sorted(pool.map(abs, [-1, -2])), os.getcwd() == here)
    print(os.environ.get("PYTHONSAFEPATH"))
"""


def test_workers_import_nothing_from_the_working_directory(tmp_path: Path):
    script = tmp_path / "program" / "script.py"
    script.parent.mkdir()
    script.write_text(STARTS_A_POOL, encoding="utf-8")
    place = tmp_path / "place"
    place.mkdir()
    for name in ("pickle", "multiprocessing", "signal", "numpy"):
        (place / f"{name}.py").write_text(f"open('{name} ran', 'w').close()\n", encoding="utf-8")
    run = subprocess.run([sys.executable, str(script)], cwd=place, capture_output=True, text=True, check=False)
    assert (run.stdout, run.returncode) == ("[1, 2] True\nNone\n", 0), run.stderr
    assert not list(place.glob("* ran"))
