"""The documentation site builds strictly, has each page in its navigation, and asks no other host for anything."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from ..source_copy import ROOT

pytestmark = pytest.mark.slow

LOADED = {"img": "src", "script": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
LINKS = ("stylesheet", "icon", "preload", "preconnect", "prefetch", "modulepreload", "manifest")


class Requests(HTMLParser):
    """The addresses that a page loads by itself, and the number of its formulas."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.formulas = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.formulas += tag == "math"
        if tag in LOADED and found.get(LOADED[tag]):
            self.addresses.append(str(found[LOADED[tag]]))
        if tag == "link" and set((found.get("rel") or "").split()) & set(LINKS):
            self.addresses.append(found.get("href") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does."""
    for package in ("mkdocs", "material", "mkdocstrings", "latex2mathml"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"skipped: no {package} (the extra docs)")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


def read(page: Path) -> Requests:
    requests = Requests()
    requests.feed(page.read_text(encoding="utf-8"))
    return requests


def test_no_page_asks_another_host(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    foreign = [
        f"{page.relative_to(site)}: {address}"
        for page in pages
        for address in read(page).addresses
        if address.startswith(("http:", "https:", "//"))
    ]
    assert not foreign
    styles = [path.read_text("utf-8") for path in (*site.rglob("*.css"), *site.rglob("*.svg"))]
    assert not [text for text in styles if re.search(r"@import|url\(\s*['\"]?(?:https?:)?//", text)]


def test_formulas_are_drawn_without_a_script(site: Path) -> None:
    page = site / "scores.html"
    assert read(page).formulas > 40
    assert "arithmatex" not in page.read_text("utf-8") and "<merror" not in page.read_text("utf-8")


def test_the_api_has_every_public_name(site: Path) -> None:
    import eraser_hub

    text = (site / "reference.html").read_text("utf-8")
    names = [name for name in eraser_hub.__all__ if not name.startswith("__")]
    assert [name for name in names if f"eraser_hub.{name}" not in text] == []


def test_the_commands_have_every_verb_and_option(site: Path) -> None:
    from eraser_hub import cli

    text = (site / "commands.html").read_text("utf-8")
    assert [name for name in cli.VERBS if f'<h2 id="{name}">' not in text] == []
    for name in cli.VERBS:
        for argument in getattr(cli, name).assemble_argument_collection(parse_docstring=True):
            assert not argument.show or argument.name in text, (name, argument.name)


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder and writes no log."""

    def log_message(self, *words: object) -> None:
        """Write nothing."""


@pytest.fixture(scope="module")
def origin(site: Path) -> Iterator[str]:
    """The address of a server of the site."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.browser
@pytest.mark.parametrize("page", ["index", "explain", "scores", "results", "reference", "commands"])
def test_a_page_fits_its_window_and_everybody_can_use_it(
    origin: str, browser: Any, page: str, serious_findings: Callable[[Any], list[str]]
) -> None:
    from tools.browser import VIEWS, view_as

    for width, scheme in VIEWS:
        view_as(browser, width, scheme)
        browser.get(f"{origin}{page}.html")
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth"), (width, scheme)
        assert serious_findings(browser) == [], (width, scheme)
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
