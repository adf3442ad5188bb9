"""README.md and docs/ print what they say, each page typed in a clone of its own (see pages.py), and lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.site import MADE

from ..source_copy import ROOT
from . import pages

TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
PAGES = (*(ROOT / name for name in TOP), *sorted((ROOT / "docs").glob("*.md")))
# GitHub leads these from the README's place to the repository's own pages
WORKFLOW = re.compile(r"\.\./\.\./actions/workflows/([\w-]+\.yml)(?:/badge\.svg)?")
PLACE = re.compile(r"`((?:\w+/)+\w+\.py)(?::(\w+))?`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir()}


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `make quickstart` leaves."""
    return pages.make_clone(tmp_path_factory.mktemp("quickstart")) / "hub"


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if re.search(r"^```(console|python)", page.read_text("utf-8"), re.MULTILINE)],
    ids=lambda page: page.name,
)
def test_page_as_typed(page: Path, hub: Path, tmp_path: Path) -> None:
    text = page.read_text("utf-8")
    assert pages.type_page(text, pages.make_clone(tmp_path, hub)) == text


def test_a_page_is_written_with_what_its_blocks_print(tmp_path: Path) -> None:
    files = "`a.txt`:\n\n```text\none\ntwo\n```\n\n`a.txt`:\n\n```diff\n one\n-two\n+three\n```\n"
    console = "```console\n$ echo not shown\n$ cat \\\n    a.txt\n{}$ false\n{}```\n"
    python = "```python\nx = 1  # not printed\n# why\nprint(x,\n      2)\n{}print()\n{}```\n"
    page = (files + console + python).format("one\nthree\n", "", "# 1 2\n", "#\n")
    with pytest.raises(AssertionError, match="exit status 1"):
        pages.type_page(page, tmp_path)
    page = page.replace("$ false\n", "$ ls nothing\nls: cannot access 'nothing': No such file or directory\n")
    assert pages.type_page(page, tmp_path) == page
    old = page.replace("one\nthree\n", "old\n").replace("# 1 2\n", "# old\n# older\n")
    assert pages.type_page(old, tmp_path) == page
    with pytest.raises(AssertionError, match="2 places"):
        pages.change("a\na\n", " a\n+x\n")


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    lost = []
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        workflow = WORKFLOW.fullmatch(path)
        target = ROOT / ".github" / "workflows" / workflow[1] if workflow else page.parent / path if path else page
        if page.parent.name == "docs" and path in MADE:  # by the site, which holds these links to be there
            continue
        if "://" not in link and (not target.exists() or (anchor and anchor not in anchors(target))):
            lost.append(link)
    assert not lost


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_places_in_the_code_are_there(page: Path) -> None:
    """`folder/file.py` and `folder/file.py:name` exist, or the page's own blocks write them."""
    written = {file: text for file, _, _, text in pages.BLOCK.findall(page.read_text("utf-8")) if file}
    lost = []
    for path, name in PLACE.findall(page.read_text(encoding="utf-8")):
        if path.split("/")[0] not in FOLDERS:
            continue
        file = ROOT / path
        text = file.read_text(encoding="utf-8") if file.is_file() else written.get(path)
        if text is None or (name and not re.search(rf"^(?:def|class) {name}\b|^{name}\b.* = ", text, re.MULTILINE)):
            lost.append(f"{path}:{name}")
    assert not lost
