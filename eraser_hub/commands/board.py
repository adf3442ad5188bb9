"""``eraser-hub board``: the results board, static HTML and a gradio Space from the same data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eraser_hub.records.tables import FORMATS

from .usage import OnlyPredicted, Revision, at_revision, default_split, one_of, print_tables, say

Out = Annotated[Path | None, typer.Option(help="Folder to write index.html and board.json to.")]
Scores = Annotated[
    list[str] | None,
    typer.Option(help="A score file with its signature, FILE or SYSTEM@DATASET=FILE; repeatable, draws are averaged."),
]
Submission = Annotated[
    list[str] | None,
    typer.Option(
        help="A predictions file, SYSTEM=FILE (https:// and hf:// too), scored here against --dataset; repeatable, "
        "draws are averaged."
    ),
]
Dataset = Annotated[
    Path | None, typer.Option(help="The built dataset that submissions answer: its folder, or its id on the Hub.")
]
Config = Annotated[str | None, typer.Option(help="Config of the submissions; the default if not given.")]
Split = Annotated[str | None, typer.Option(help="Split of the submissions; test by default.")]
Published = Annotated[bool, typer.Option(help="Also the papers' printed results.")]
Space = Annotated[Path | None, typer.Option(help="Also write the board as a gradio Space to this folder.")]
Title = Annotated[str, typer.Option(help="The board's title.")]
Format = Annotated[
    str | None,
    typer.Option(
        help=f"Print a table for each dataset ({', '.join(FORMATS)}): the papers' scores; csv and json have all."
    ),
]


def board(
    out: Out = None, scores: Scores = None, submission: Submission = None, dataset: Dataset = None,
    config: Config = None, split: Split = None, revision: Revision = None, only_predicted: OnlyPredicted = False,
    published: Published = True, space: Space = None, title: Title = "Results board", format: Format = None,
) -> None:  # fmt: skip
    """Write the results board: every system by every metric by every dataset, none of them first by default.

    Lines come from score files that carry their signature (`eraser-hub score`, `eraser-hub report`), from predictions
    that are scored here, and from the papers' tables. A number without a signature is refused.

    **Examples**

        eraser-hub board --out board

        eraser-hub board --scores report/ours.scores.json --scores "LIME@movies=scores.json" --out board --space space

        eraser-hub board --scores report/ours.scores.json --scores report/theirs.scores.json --no-published --format latex

        eraser-hub board --submission ours=P.jsonl --dataset hub/eraser --config movies --split test --out board
    """
    from eraser_hub.reports.board import as_json, board_lines, board_tables, write_board
    from eraser_hub.reports.board_lines import named_score_file, submitted_lines
    from eraser_hub.reports.system_scores import ReportSettings

    if format is not None:
        one_of(format, FORMATS, "--format")
    if out is None and space is None and format is None:
        raise typer.BadParameter("expected where to write to (--out, --space) or --format", param_hint="--out")
    if submission and dataset is None:
        raise typer.BadParameter("submissions are scored against a dataset: give --dataset", param_hint="--submission")
    lines = [named_score_file(argument) for argument in scores or []]
    if submission and dataset is not None:
        split = default_split() if split is None else split
        settings = ReportSettings(only_predicted=only_predicted)
        place = Path(at_revision(str(dataset), revision))
        lines.extend(submitted_lines(submission, dataset=place, config=config, split=split, settings=settings))
    for line in lines:
        for note in line.notes:
            say(f"{line.system}: {note}")
    lines = board_lines(lines, published=published)
    if not lines:
        raise typer.BadParameter("nothing to show: give --scores or --submission", param_hint="--no-published")
    written = list[Path]()

    def write_pages() -> None:
        if out is not None:
            written.extend(write_board(out, lines, title=title))

    if space is None:
        write_pages()
    else:
        from eraser_hub.reports.space import write_space

        written += write_space(space, lines, title=title, beside=write_pages)
    for path in written:
        typer.echo(str(path), err=format is not None)
    if format is not None:
        details = [f"{line.system}, {line.dataset}: {line.detail}" for line in lines]
        print_tables(board_tables(lines, whole=format == "csv"), format, as_json(lines), details)
