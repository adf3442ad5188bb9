"""Where the tests find real data: read in place, and skipped with that word where there is none."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from .needs import refused_imports

# a slow machine is no fault: examples are counted, not timed
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# before any import of datasets, evaluate or transformers: nothing may ask a hub
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
os.environ.setdefault("HF_UPDATE_DOWNLOAD_COUNTS", "0")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# small networks are several times as fast on one thread, and the same on any machine
os.environ.setdefault("OMP_NUM_THREADS", "1")
# nor is a user's cache read or filled: each test process has one of its own, which these libraries read when imported
HOME_OF_CACHES = tempfile.mkdtemp(prefix="eraser-hub-tests-")
os.environ["HF_HOME"] = HOME_OF_CACHES
os.environ["ERASER_HUB_CACHE"] = os.path.join(HOME_OF_CACHES, "eraser-hub")
for variable in ("HF_DATASETS_CACHE", "HF_METRICS_CACHE", "HF_EVALUATE_CACHE", "HF_MODULES_CACHE", "HF_HUB_CACHE"):
    os.environ.pop(variable, None)

ROOT = Path(__file__).resolve().parent.parent
CORPORA = Path(os.environ.get("ERASER_CORPORA", ROOT.parent / "shared" / "corpora")).resolve()
REFERENCE_SCORES = Path(os.environ.get("ERASER_GOLDEN", CORPORA.parent / "golden")).resolve() / "eraser_metrics"
SAMPLES = ROOT / "samples"


HEAVY = ("torch", "transformers", "datasets", "evaluate")


def only_unit(config: pytest.Config) -> bool:
    """Whether the tests are selected by ``-m unit`` (or ``-m "unit and .."``)."""
    words = str(config.getoption("markexpr")).split()
    return words[:1] == ["unit"] and "or" not in words


def pytest_configure(config: pytest.Config) -> None:
    """Refuse the heavy libraries for the whole run of the unit tests."""
    if only_unit(config):
        stack = contextlib.ExitStack()
        stack.enter_context(refused_imports(HEAVY, "a test marked unit imports it"))
        config.add_cleanup(stack.close)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files without unit tests unread where no other test is asked for."""
    if only_unit(config) and collection_path.name.startswith("test_") and collection_path.suffix == ".py":
        return "pytest.mark.unit" not in collection_path.read_text(encoding="utf-8") or None
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Refuse torch and transformers, seconds long, while test modules are read; evaluate does without the latter."""
    with refused_imports(HEAVY[:2], "a test module imports it in a fixture or a test, not when it is collected"):
        return (yield)


def pytest_unconfigure() -> None:
    """Remove this process's caches."""
    shutil.rmtree(HOME_OF_CACHES, ignore_errors=True)


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
    """What the reference scorer says of real corpora, which it quotes (ERASER_GOLDEN, by default beside them)."""
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
    pytest.importorskip("selenium", reason="skipped: selenium is not installed")
    from tools import browser as tools

    if missing := tools.missing_programs():
        pytest.skip(f"skipped: no {' and no '.join(missing)}")
    with tools.headless_browser() as driver:
        driver.set_page_load_timeout(60)
        yield driver


AXE = """
const done = arguments[arguments.length - 1];
const grave = ["serious", "critical"];
axe.run(document).then((result) => done(result.violations.filter((rule) => grave.includes(rule.impact))
  .flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.html.slice(0, 200)}: ${node.failureSummary}`))));
"""


@pytest.fixture(scope="session")
def serious_findings() -> Callable[[Any], list[str]]:
    """What axe-core finds on a browser's page, of impact serious or critical; `make browser` installs it."""
    script = ROOT / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        pytest.skip("skipped: no axe-core (`make browser` installs it where npm reaches its registry)")
    code = script.read_text(encoding="utf-8")

    def find(browser: Any) -> list[str]:
        browser.execute_script(code)
        return browser.execute_async_script(AXE)

    return find


@pytest.fixture(scope="session")
def spaces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the Space of every metric, as `evaluate` loads it."""
    out = tmp_path_factory.mktemp("spaces")
    from eraser_hub.publishing.spaces import build_metrics

    build_metrics(out)
    return out
