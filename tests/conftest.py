"""Where the tests find real data: read in place, and skipped with that word where there is none."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# a slow machine is no fault: examples are counted, not timed
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# before any import of datasets, evaluate or transformers: nothing may ask a hub
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
os.environ.setdefault("HF_UPDATE_DOWNLOAD_COUNTS", "0")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

ROOT = Path(__file__).resolve().parent.parent
CORPORA = Path(os.environ.get("ERASER_CORPORA", ROOT.parent / "shared" / "corpora")).resolve()
REFERENCE_SCORES = Path(os.environ.get("ERASER_GOLDEN", CORPORA.parent / "golden")).resolve() / "eraser_metrics"
SAMPLES = ROOT / "samples"


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of real corpora (ERASER_CORPORA)."""
    if not CORPORA.is_dir():
        pytest.skip(f"skipped: no real corpora at {CORPORA} (set ERASER_CORPORA)")
    return CORPORA


@pytest.fixture(scope="session")
def golden() -> Path:
    """Expected values of small synthetic cases; each file says where they come from."""
    return ROOT / "tests" / "golden"


@pytest.fixture(scope="session")
def reference_scores() -> Path:
    """What the reference scorer said about real corpora, which it quotes (ERASER_GOLDEN, by default beside the corpora)."""
    if not REFERENCE_SCORES.is_dir():
        pytest.skip(f"skipped: no golden values at {REFERENCE_SCORES} (set ERASER_GOLDEN)")
    return REFERENCE_SCORES


@pytest.fixture(scope="session")
def samples() -> Path:
    """The bundled samples."""
    return SAMPLES


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium, shared by a module's tests; its console is emptied by whoever reads it."""
    from eraser_hub.publishing.screenshots import headless_browser, missing_programs

    pytest.importorskip("selenium", reason="skipped: selenium is not installed")
    if missing := missing_programs():
        pytest.skip(f"skipped: no {' and no '.join(missing)}")
    with headless_browser() as driver:
        driver.set_page_load_timeout(60)
        yield driver


@pytest.fixture
def ways(samples: Path, tmp_path: Path) -> Path:
    """A folder with two systems' predictions by two ways; by the second comprehensiveness and sufficiency change places."""
    one, other = (f"{side}_classification_scores" for side in ("comprehensiveness", "sufficiency"))
    for name, source in (("ours", "movies.val.jsonl"), ("theirs", "movies.val.baseline.jsonl")):
        lines = (samples / "predictions" / "eraser" / source).read_text("utf-8").splitlines()
        rows = list(map(json.loads, lines))
        for way in ("remove", "mask"):
            path = tmp_path / f"{name}.{way}.jsonl"
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
            path.with_name(path.name + ".run.json").write_text(json.dumps({"signature": f"kd:.1|erase:{way}|seed:1"}))
            for part in [part for row in rows for part in (row, *row.get("thresholded_scores", []))]:
                part[one], part[other] = part[other], part[one]
    return tmp_path


AXE = """
const done = arguments[arguments.length - 1];
axe.run(document).then((result) => done(result.violations.filter((rule) => ["serious", "critical"].includes(rule.impact))
  .flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.html.slice(0, 200)}: ${node.failureSummary}`))));
"""


@pytest.fixture(scope="session")
def serious_findings() -> Callable[[Any], list[str]]:
    """What axe-core finds on the page that a browser shows, of impact serious or critical; `make browser` installs it."""
    script = ROOT / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        pytest.skip("skipped: no axe-core (`make browser` installs it where npm reaches its registry)")
    code = script.read_text(encoding="utf-8")

    def find(browser: Any) -> list[str]:
        browser.execute_script(code)
        return browser.execute_async_script(AXE)

    return find


def private_caches(home: Path) -> None:
    """No user's cache is read or filled: datasets and evaluate keep what they make under `home`."""
    import datasets.config
    import evaluate.config

    datasets.config.HF_DATASETS_CACHE = str(home / "datasets")
    evaluate.config.HF_METRICS_CACHE = home / "metrics"
    evaluate.config.HF_MODULES_CACHE = str(home / "modules")


@pytest.fixture(autouse=True, scope="session")
def _private_caches(tmp_path_factory: pytest.TempPathFactory):
    """Each test process has caches of its own, once: a process that imported a module keeps to its folder."""
    private_caches(tmp_path_factory.mktemp("hf_home"))
    yield
