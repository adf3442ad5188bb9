"""Hooks of mkdocs.yml: what the site has beside docs/, and formulas without a script.

Pages outside docs/ that the pages link to (the cards, CONTRIBUTING.md, ..) become pages of the site. The pages of the
commands and of the Python API are made here, out of docstrings. Formulas between dollars become MathML, which browsers
draw without a script or a font from elsewhere.
"""

from __future__ import annotations

import html
import importlib
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# page of the site -> the file that it shows
PAGES = {
    "project/changelog.md": "CHANGELOG.md",
    "project/security.md": "SECURITY.md",
    "project/code-of-conduct.md": "CODE_OF_CONDUCT.md",
    "project/benchmarks.md": "benchmarks/RESULTS.md",
}
# what builds fill in
TEMPLATES = ("own_corpora.md",)
CARDS = ("datasets_scripts/cards", "metrics/cards")
COMMANDS = """# Commands

Look up what a command does and which options it takes. `eraser-hub VERB --help` prints the same in the terminal. The
exit status is 0 after success, 1 after an error in the data, 2 after an error in the command itself and 130 after an
interruption.

| command | what it does |
|---|---|
"""
API = """# Python API

Look up a public name: what it takes, what it returns, and what it raises. `import eraser_hub` is all that you need to
import; names load what they need when you first use them. The [commands](commands.md) are the functions of their
names; the files are described in [predictions](predictions.md).
"""
# names of `eraser_hub.attribution` for the reference
EXPLAIN = ("ExplainSettings", "Instance", "build_settings", "explain_instances", "open_model")
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FENCE = re.compile(r"^(````?).*?^\1$", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)

CELL = re.compile(r"<td\b[^>]*>.*?</td>", re.DOTALL)
# what a build fills in
FILLED = re.compile(r"^<!-- [\w ]+ -->$", re.MULTILINE)
BREAK = re.compile(r"[,_/.](?=[^,_/.]{2})")
LONG = re.compile(r"<code>([^<]{27,})</code>")


def shown_pages() -> dict[str, str]:
    """Return the file that each page and picture outside docs/ shows, by its place in the site."""
    files = [path for folder in CARDS for path in sorted((ROOT / folder).glob("*.*")) if path.suffix in (".md", ".png")]
    files = [path for path in files if path.name not in TEMPLATES]
    return {**PAGES, **{f"cards/{path.name}": path.relative_to(ROOT).as_posix() for path in files}}


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that lie outside docs/, and those that are made here."""
    from mkdocs.structure.files import File

    for place, source in shown_pages().items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    for place, make_page in MADE.items():
        files.append(File.generated(config, place, content=make_page()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead the links of a page to where the site has their files."""
    place = page.file.src_uri
    source = shown_pages().get(place, f"docs/{place}")
    places = {file: uri for uri, file in shown_pages().items()}

    def moved(match: re.Match[str]) -> str:
        path, mark, anchor = match[2].partition("#")
        if not path or ":" in path:
            return match[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        target = places.get(file) or file.removeprefix("docs/")
        return f"{match[1]}{posixpath.relpath(target, posixpath.dirname(place) or '.')}{mark}{anchor}{match[3]}"

    text = filled_card(markdown, Path(place).stem) if place.startswith("cards/") else markdown
    return outside_code(text, lambda part: LINK.sub(moved, part))


def filled_card(markdown: str, name: str) -> str:
    """Return a dataset's card as a page: with its picture, and a line for what a build writes."""
    pictured = re.sub(r"<!-- picture: (.*?) -->", rf"![\1]({name}.png)", markdown)
    return FILLED.sub("*`eraser-hub build` completes this part for the data that it builds.*", pictured)


def outside_code(markdown: str, change: Any) -> str:
    """Change a page's text between its code blocks."""
    parts, end = [], 0
    for block in FENCE.finditer(markdown):
        parts += [change(markdown[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, change(markdown[end:])])


def make_commands_page() -> str:
    """Return the page of the verbs: what `eraser-hub VERB --help` says of each."""
    from cyclopts.docs.markdown import generate_markdown_docs

    from eraser_hub import cli

    parts = [COMMANDS + "".join(f"| [`{name}`](#{name}) | {verb.summary} |\n" for name, verb in cli.VERBS.items())]
    for name in cli.VERBS:
        command = getattr(cli, name)
        with cli.app.app_stack([cli.app, command]):  # whose parameters are the parent's by default
            text = generate_markdown_docs(command, command_chain=[cli.app.name[0], name])
        _, _, words = text.partition("\n\n")  # its title is the whole command
        examples = (command.help_epilogue or "").replace("```\n", "\n```{ .console .wrapped }\n", 1)
        examples = examples.replace("\neraser-hub ", "\n$ eraser-hub ")
        parts += [f"## {name}", words.strip(), examples]
    return "\n\n".join(parts)


def make_api_page() -> str:
    """Return the page of the public names, each with the line by which mkdocstrings draws it."""
    parts = [API]
    for heading, objects in list_names():
        parts.append(f"## {heading}")
        for name, thing in objects:
            options = f"    options:\n      heading: '{name}'\n      toc_label: '{name.rpartition('.')[2]}'\n"
            parts.append(f"::: {thing.__module__}.{thing.__qualname__}\n{options}")
    return "\n\n".join(parts)


def list_names() -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Yield each part of the reference with its objects by name."""
    import eraser_hub
    from eraser_hub import attribution
    from eraser_hub.publishing.spaces import list_metric_names

    public = [name for name in eraser_hub.__all__ if not name.startswith("__")]
    yield "`eraser_hub`", [(f"eraser_hub.{name}", getattr(eraser_hub, name)) for name in public]
    names = [(f"eraser_hub.attribution.{name}", getattr(attribution, name)) for name in EXPLAIN]
    yield "`eraser_hub.attribution`", names
    modules = [(name, importlib.import_module(f"eraser_hub.metrics.{name}")) for name in list_metric_names()]
    yield "`evaluate.load(..)`", [(name, getattr(module, name.title().replace("_", ""))) for name, module in modules]


# page of the site -> the function that makes it
MADE = {"commands.md": make_commands_page, "reference.md": make_api_page}


def on_page_content(page_html: str, page: Any, config: Any, files: Any) -> str:
    """Set the formulas in MathML, and let long names in tables break."""
    text = FORMULA.sub(lambda match: mathml(html.unescape(match[2]), block=match[1] == "div"), page_html)
    return CELL.sub(lambda cell: LONG.sub(breakable, cell[0]), text)


def breakable(name: re.Match[str]) -> str:
    """Return a long name in a table with places where it may break."""
    words = BREAK.sub(lambda sign: f"{sign[0]}<wbr>", name[1])
    return f'<code class="long">{words}</code>'


def mathml(formula: str, block: bool) -> str:
    """Return a TeX formula as MathML."""
    from latex2mathml.converter import convert

    drawn = convert(formula.strip(), display="block" if block else "inline")
    return f'<div class="formula" tabindex="0">{drawn}</div>' if block else drawn


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Name the dialog of the search for screen readers."""
    search = 'data-md-component="search" role="dialog"'
    return output.replace(search, f'{search} aria-label="Search"')
