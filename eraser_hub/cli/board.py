"""``eraser-hub board``: the results board, static HTML and a gradio Space from the same data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from eraser_hub.records.tables import FORMATS

from .usage import OnlyPredicted, Revision, at_revision, default_split, one_of, print_tables, say, takes


@dataclass(frozen=True, slots=True)
class BoardOptions:
    """The options of ``eraser-hub board``, and their help.

    Attributes:
        out: Folder to write index.html and board.json to.
        scores: A score file with its signature, FILE or SYSTEM@DATASET=FILE; repeatable, draws are averaged.
        submission: A predictions file, SYSTEM=FILE (https:// and hf:// too), scored here against --dataset; repeatable,
            draws are averaged.
        dataset: The built dataset that submissions answer: its folder, or its id on the Hub.
        config: Config of the submissions; the default if not given.
        split: Split of the submissions; test by default.
        published: Also the papers' printed results.
        space: Also write the board as a gradio Space to this folder.
        title: The board's title.
    """

    out: Path | None = None
    scores: list[str] | None = None
    submission: list[str] | None = None
    dataset: Path | None = None
    config: str | None = None
    split: str | None = None
    revision: Revision = None
    only_predicted: OnlyPredicted = False
    published: bool = True
    space: Path | None = None
    title: str = "Results board"
    format: Annotated[
        str | None,
        typer.Option(
            help=f"Print a table for each dataset ({', '.join(FORMATS)}): the papers' scores; csv and json have all."
        ),
    ] = None


@takes(BoardOptions)
def board(options: BoardOptions) -> None:
    """Write the results board: every system by every metric by every dataset, none of them first by default.

    Lines come from score files that carry their signature (`eraser-hub score`, `eraser-hub report`), from predictions
    that are scored here, and from the papers' tables. A number without a signature is refused.

    **Examples**

        eraser-hub board --out board

        eraser-hub board --scores report/ours.scores.json --scores "LIME@movies=scores.json" --out board --space space

        eraser-hub board --scores report/ours.scores.json --scores report/theirs.scores.json --no-published \
--format latex

        eraser-hub board --submission ours=P.jsonl --dataset hub/eraser --config movies --split test --out board
    """
    from eraser_hub.reports.board import as_json, board_lines, board_tables, write_board
    from eraser_hub.reports.board_lines import named_score_file, submitted_lines
    from eraser_hub.scoring.settings import ScoreSettings

    if options.format is not None:
        one_of(options.format, FORMATS, "--format")
    if options.out is None and options.space is None and options.format is None:
        raise typer.BadParameter("expected where to write to (--out, --space) or --format", param_hint="--out")
    if options.submission and options.dataset is None:
        raise typer.BadParameter("submissions are scored against a dataset: give --dataset", param_hint="--submission")
    lines = [named_score_file(argument) for argument in options.scores or []]
    if options.submission and options.dataset is not None:
        split = default_split() if options.split is None else options.split
        settings = ScoreSettings(confidence_level=0.95, only_predicted=options.only_predicted)
        place = Path(at_revision(str(options.dataset), options.revision))
        lines.extend(
            submitted_lines(options.submission, dataset=place, config=options.config, split=split, settings=settings)
        )
    for line in lines:
        for note in line.notes:
            say(f"{line.system}: {note}")
    lines = board_lines(lines, published=options.published)
    if not lines:
        raise typer.BadParameter("nothing to show: give --scores or --submission", param_hint="--no-published")
    written = list[Path]()

    def write_pages() -> None:
        if options.out is not None:
            written.extend(write_board(options.out, lines, title=options.title))

    if options.space is None:
        write_pages()
    else:
        from eraser_hub.reports.space import write_space

        written += write_space(options.space, lines, title=options.title, beside=write_pages)
    for path in written:
        typer.echo(str(path), err=options.format is not None)
    if options.format is not None:
        details = [f"{line.system}, {line.dataset}: {line.detail}" for line in lines]
        print_tables(board_tables(lines, whole=options.format == "csv"), options.format, as_json(lines), details)
