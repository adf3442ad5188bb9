"""``eraser-hub import``: a rationale corpus of any shape -> a corpus folder that every verb takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from eraser_hub.records.errors import DataError, UsageError, show
from eraser_hub.records.options import Options

from .usage import print_line, print_note, with_options

if TYPE_CHECKING:
    from eraser_hub.conversion.importing.corpus import Imported
    from eraser_hub.conversion.importing.sources import Source

MARKS = ("mask", "spans", "quotes")


@dataclass(frozen=True)
class ImportOptions(Options):
    """The options of ``eraser-hub import``, and their help.

    Attributes:
        source: A file (jsonl, json, csv, tsv, parquet; also https://, hf://), a dataset's folder, or a Hub id.
        name: Name of the corpus, its folder and its config.
        out: Folder to write the corpus folder OUT/NAME to.
        label: Column of the label, or of several people's labels, or an annotation tool's question; not needed if
            there is one candidate.
        tokens: Column of token lists; repeat it for rows of several texts.
        text: Column of text, or of lists of sentences, in place of `tokens`.

    Columns:
        mask: For each text: 0/1 a token, a list or a list of lists (several annotators); of one text repeat it for a
            column an annotator. Without `mask`, `spans` and `quotes` a corpus has no rationales.
        spans: [start, end] pairs in place of `mask`, a list or a list of lists.
        quotes: Passages of the text in place of `mask`, a list or with ; between; each occurs once in the text.
        offsets: Unit of spans: tokens (default for `tokens`), characters (for `text`), or sentences; or indices, the
            numbers of the marked tokens.
        query: Column of questions about the text.
        id: Column of ids; by default SPLIT_LINE.
        annotator: Column of annotators' names, in a table of a row per text and person; rows of one text have one
            `id`, or the same text. Of lists of marks and labels: the column of the list of names.

    Public corpora:
        recipe: Recipe for a release's files: hatexplain, ecqa, cos-e, scifact, hotpotqa, docred, beeradvocate-aspects,
            toxic-spans, e-snli-highlights, or a YAML file. It names the columns.

    Annotation tools:
        format: Reader of the files: an annotation tool (doccano, label-studio, prodigy, brat, cas), which is found by
            looking, or a plug-in's.
        span_label: Label of the marks that are evidence; repeat it. Not needed if all marks have one label.

    Splits and tokens:
        split: SPLIT=FILE, or SPLIT=SPLIT of the dataset; repeat it. The file `source` is the split train.
        annotators: Use of several annotators: groups (an evidence group each), or majority.
        tokenizer: Tokenizer of `text`: whitespace, or a tokenizer's folder; by default U+0020 separates.
        config: Configuration of a dataset that has several.

    Run:
        force: Replace the files of an earlier import in OUT/NAME; other files stay.
    """

    source: str
    name: str
    out: Path
    label: str | None = None
    tokens: list[str] | None = None
    text: list[str] | None = None
    mask: list[str] | None = None
    spans: list[str] | None = None
    quotes: list[str] | None = None
    offsets: Literal["tokens", "characters", "sentences", "indices"] | None = None
    query: str | None = None
    id: str | None = None
    annotator: str | None = None
    recipe: str | None = None
    format: str | None = None
    span_label: list[str] | None = None
    split: list[str] | None = None
    annotators: Literal["groups", "majority"] = "groups"
    tokenizer: str | None = None
    config: str | None = None
    force: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.recipe is not None:
            own = ("tokens", "text", *MARKS, "offsets", "label", "query", "id", "annotator", "format")
            if named := [name for name in own if getattr(self, name)]:
                message = "a recipe names the columns itself"
                raise UsageError(message, argument=named[0])
            return
        marked = self.mask or self.spans or self.quotes
        if not marked and not self.tokens:
            return  # an annotation tool's export has its own marks
        if self.span_label:
            raise UsageError("it goes with an annotation tool's marks", argument="span_label")
        texts_argument, texts = self.one_of("tokens", "text")
        if marked:
            marks_argument, marks = self.one_of(*MARKS)
            if len(marks) != len(texts) and len(texts) > 1:  # of one text a column an annotator
                expected = f"expected it as often as `{texts_argument}` ({len(texts)}), found it {len(marks)} times"
                raise UsageError(expected, argument=marks_argument)
        if self.offsets is not None and not self.spans:
            raise UsageError("it goes with `spans`", argument="offsets")
        if self.tokenizer is not None and texts_argument == "tokens":
            message = "it goes with `text`: `tokens` are cut already"
            raise UsageError(message, argument="tokenizer")

    def one_of(self, *names: str) -> tuple[str, list[str]]:
        """Return the one of these that has values, and the values."""
        filled = {name: values for name in names if (values := getattr(self, name))}
        if len(filled) != 1:
            expected, filled_names = (
                sep.join(f"`{name}`" for name in some) for sep, some in ((", ", names), (" and ", filled))
            )
            raise UsageError(f"expected one of {expected}, found {filled_names or 'none'}")
        return next(iter(filled.items()))


@with_options(ImportOptions)
def import_corpus(options: ImportOptions) -> None:
    """Turn a rationale corpus of any shape, or an annotation tool's export, into a corpus folder, OUT/NAME.

    `build --source OUT` and `score --source OUT/NAME` read it. Name a nested column with a dot: annotators.label.
    Everything that is left out or changed is counted and reported.

    **Examples**

        eraser-hub import --source export.json --name mine --out corpora

        eraser-hub import --recipe scifact --source scifact/claims_train.jsonl --name claims --out corpora

        eraser-hub import --source posts.json --name hate --tokens post_tokens --mask rationales \
--label annotators.label --out corpora

        eraser-hub import --source reviews.csv --split val=more.csv --name reviews --text review --quotes Anna \
--quotes Ben --label stars --out corpora

        eraser-hub import --source org/claims --split train=train --split test=test --name claims --text abstract \
--spans evidence
        --offsets sentences --query claim --label verdict --out corpora
    """
    if options.recipe is not None:
        result = _import_recipe(options)
    else:
        result = _import_tasks(options) if _is_tool_export(options) else _import_rows(options)
    for note in result.notes:
        print_note(note)
    counts = ", ".join(f"{split} {rows:,}" for split, rows in result.rows.items())
    print_line(f"{result.folder}: {counts}; labels {', '.join(result.labels)}")
    print_note(f"next: eraser-hub build eraser --source {result.folder} --out hub")


def _import_recipe(options: ImportOptions) -> Imported:
    """Import a public corpus by its recipe."""
    from collections import Counter
    from functools import partial

    from eraser_hub.conversion.importing.corpus import import_corpus as run
    from eraser_hub.conversion.importing.recipes import apply_steps, read_recipe
    from eraser_hub.conversion.importing.texts import BLANKS

    recipe = read_recipe(options.recipe or "")
    print_note(f"recipe: {recipe.title}, {recipe.url}; licence: {recipe.facts['license']}")
    print_note(f"tried on: {recipe.tried}")
    dropped: Counter[str] = Counter()
    sources = _sources(options, partial(apply_steps, recipe, dropped=dropped))
    for step, count in dropped.items():
        if count:
            print_note(f"rows left out by the recipe's step {step}: {count:,}")
    cut: dict[str, Any] = {"tokenizer": options.tokenizer or BLANKS, "annotators": options.annotators}
    return run(sources, options.name, recipe.columns, options.out, force=options.force, facts=recipe.facts, **cut)


def _is_tool_export(options: ImportOptions) -> bool:
    """Return True if the marks and labels of an annotation tool's export are wanted, not columns of its rows."""
    from eraser_hub.conversion.download.addresses import fetch_file
    from eraser_hub.conversion.importing.sources import READERS, find_tools
    from eraser_hub.conversion.importing.tasks import TaskReader

    if options.mask or options.spans or options.quotes or options.tokens:
        return False
    if options.format is not None or options.span_label:
        return options.format is None or issubclass(READERS.find(options.format, "format"), TaskReader)
    return not options.text or bool(find_tools(fetch_file(options.source)))


def _import_tasks(options: ImportOptions) -> Imported:
    """Import an annotation tool's export."""
    from eraser_hub.conversion.download.addresses import fetch_file
    from eraser_hub.conversion.importing.annotations import import_annotations, open_tool
    from eraser_hub.conversion.importing.sources import UnknownEndingError

    others = _parse_splits(options.split or [], of_file=True)
    source = fetch_file(options.source)
    try:
        open_tool(source, options.format)
    except (UsageError, UnknownEndingError):
        if options.format is not None:
            raise
        columns = _list_columns(source)
        message = f"expected one of `tokens`, `text`, the column of the texts, found none{columns}"
        raise UsageError(message) from None
    files = {"train": source, **{split: fetch_file(file) for split, file in others.items()}}
    same = ("format", "label", "query", "id", "annotators", "tokenizer", "force")
    settings: dict[str, Any] = {name: getattr(options, name) for name in same}
    settings |= {name: getattr(options, name) or () for name in ("span_label", "text")}
    return import_annotations(files, options.name, options.out, **settings)


def _list_columns(source: Path) -> str:
    """Return words on the columns of a file's first row; "" of a file that no reader takes or that has no row."""
    from eraser_hub.conversion.importing.sources import open_file

    try:
        row = next(open_file(source).rows(), None)
    except DataError:
        return ""
    return f"; {source.name} has {', '.join(map(show, row.cells))}" if row is not None else ""


def _import_rows(options: ImportOptions) -> Imported:
    """Import rows whose columns the user names."""
    from eraser_hub.conversion.importing.corpus import Columns
    from eraser_hub.conversion.importing.corpus import import_corpus as run
    from eraser_hub.conversion.importing.sources import find_label_column
    from eraser_hub.conversion.importing.texts import BLANKS

    texts_argument, texts = options.one_of("tokens", "text")
    kind, marks = next(((name, marks) for name in MARKS if (marks := getattr(options, name))), ("mask", []))
    tokenized = texts_argument == "tokens"
    how = (tokenized, kind, options.offsets or ("tokens" if tokenized else "characters"))
    sources = _sources(options)
    label = options.label
    if label is None:
        used = {*texts, *marks, options.query, options.id, options.annotator}
        label, found = find_label_column(next(iter(sources.values())), used)
        print_note(f"label: {label} ({found}), the only candidate")
    columns = Columns(tuple(texts), tuple(marks), label, *how, options.query, options.id, options.annotator)
    cut: dict[str, Any] = {"tokenizer": options.tokenizer or BLANKS, "annotators": options.annotators}
    return run(sources, options.name, columns, options.out, force=options.force, **cut)


def _sources(options: ImportOptions, prepare: Callable[[Source], Source] = lambda source: source) -> dict[str, Source]:
    """Split -> its rows, after ``prepare``."""
    from eraser_hub.conversion.download.addresses import fetch_file
    from eraser_hub.conversion.importing.sources import list_suffixes, open_dataset, open_file

    path = options.source
    of_file = options.format is not None or path.endswith(list_suffixes())
    others = _parse_splits(options.split or [], of_file)
    if of_file:
        paths = {split: fetch_file(file) for split, file in [("train", path), *others.items()]}
        if options.recipe is None:
            _name_tool(options, paths["train"])
        return {split: prepare(open_file(file, options.format)) for split, file in paths.items()}
    sources_by_split = open_dataset(path, options.config)
    if not others:
        others = {"train": "train" if "train" in sources_by_split else next(iter(sources_by_split))}
        rest = [split for split in sources_by_split if split != others["train"]]
        left_out = f" (left out: {', '.join(rest)}; --split SPLIT=SPLIT takes them)" if rest else ""
        print_note(f"split: {others['train']}{left_out}")
    for split in others.values():
        if split not in sources_by_split:
            raise _wrong_split(f"expected one of {', '.join(sources_by_split)}, found {split!r}")
    return {split: prepare(sources_by_split[name]) for split, name in others.items()}


def _name_tool(options: ImportOptions, path: Path) -> None:
    """Say that a file is an annotation tool's, which is read as plain rows; refuse a tool's `format`."""
    from eraser_hub.conversion.importing.sources import READERS, find_tools
    from eraser_hub.conversion.importing.tasks import TaskReader

    argument = next(name for name in (*MARKS, "tokens", "text") if getattr(options, name))
    if options.format is not None:
        if issubclass(READERS.find(options.format, "format"), TaskReader):
            message = f"{options.format} reads the marks itself: leave `{argument}` out"
            raise UsageError(message, argument="format")
        return
    for name in find_tools(path):
        print_note(
            f"{options.source} looks like an export of {name}. Its rows are read as plain rows, rejected ones too; "
            f"without --{argument} its answers and labels count"
        )


def _parse_splits(splits: list[str], of_file: bool) -> dict[str, str]:
    """Return split -> file, or split of the dataset.

    Args:
        splits: the arguments, ``SPLIT=FILE`` (of a dataset ``SPLIT=SPLIT``).
        of_file: the source is a file, which is the split train.
    """
    others: dict[str, str] = {}
    for text in splits:
        split, equals, file = text.partition("=")
        if not equals or not split or not file:
            raise _wrong_split(f"expected SPLIT=FILE, found {text!r}")
        if split in others:
            raise _wrong_split("expected each split once")
        others[split] = file
    if of_file and "train" in others:
        raise _wrong_split("expected other splits than train, which is `source`")
    return others


def _wrong_split(message: str) -> UsageError:
    return UsageError(message, argument="split")
