"""The ``build`` verb: raw files -> folders that load_dataset and evaluate.load understand."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.dataset import BuildOptions, BuildResult, PartlyBuilt

from .usage import known_configs, one_of, say


def build(
    name: Annotated[str, typer.Argument(help=f"{', '.join(HUB_DATASETS)} or metrics.")],
    source: Annotated[
        Path | None,
        typer.Option(help="Folder with one folder (or .tar.gz) per corpus; without it the release is downloaded."),
    ] = None,
    config: Annotated[list[str] | None, typer.Option(help="A configuration; repeat it for several.")] = None,
    out: Annotated[Path, typer.Option(help="Where the dataset and metric folders stand.")] = Path("hub"),
    num_proc: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    include_backup_records: Annotated[
        bool, typer.Option(help="Take up records that stand in a release's backup file alone (movies' test.jsonl.bak).")
    ] = False,
    progress: Annotated[bool, typer.Option(help="Show progress on stderr.")] = True,
) -> None:
    """Build a Hub dataset, or the metric Spaces, into OUT.

    Building one configuration keeps the others that stand there. A build that is killed leaves the old folder as it
    was, and the next run goes on where it stopped.

    Examples:

        eraser-hub build eraser --source corpora --config movies --out hub

        eraser-hub build eraser --config cose --config esnli --num-proc 4

        eraser-hub build metrics --out hub
    """
    one_of(name, (*HUB_DATASETS, "metrics"), "NAME")
    if name == "metrics":
        if source is not None or include_backup_records:
            raise typer.BadParameter(
                "`build metrics` reads no corpora: leave out --source and --include-backup-records"
            )
        from eraser_hub.publishing.spaces import build_metrics

        for folder in build_metrics(out, names=config or None):
            typer.echo(folder)
        return
    dataset = HUB_DATASETS[name]
    if source is not None and not source.exists():
        raise typer.BadParameter(f"there is no folder {source}", param_hint="--source")
    known_configs(config, dataset, source)
    try:
        how = BuildOptions(num_proc, progress, include_backup_records)
        result = dataset.build(config or None, out=out, source=source, **asdict(how))
    except PartlyBuilt as error:
        _tell(error.result)
        raise
    _tell(result)


def _tell(result: BuildResult) -> None:
    for note in result.notes:
        say(note.replace("`include_backup_records`", "--include-backup-records"))
    for config_name, splits in result.rows.items():
        counts = ", ".join(f"{split} {rows:,}" for split, rows in splits.items())
        typer.echo(f"{result.folder}: {config_name}: {counts}")
