"""The verb that lists the parts there are."""

from __future__ import annotations

import json
import subprocess
import sys


def test_methods_and_measures_are_listed_with_their_settings():
    command = [sys.executable, "-m", "eraser_hub", "methods", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    parts = {(part["sort"], part["name"]): part for part in json.loads(done.stdout)["parts"]}
    assert parts["methods", "lime"]["settings"] == "lime_samples=5000, lime_tokens=0"
    assert parts["measures", "soft-scores"]["settings"] == "soft_draws=50, soft_masks=tokens"
    assert parts["methods", "occlusion"]["settings"] == ""
    assert {sort for sort, _ in parts} == {
        *("methods", "measures", "adapters", "systems", "readers", "metrics", "datasets"),
    }
