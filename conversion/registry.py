"""The Hub datasets that this project builds, each with the same four verbs. The CLI dispatches on this table alone.

Implementations are named, not imported: `eraser-hub build eraser` imports what building eraser needs and nothing else.
Each dataset's functions have the signatures of `HubDataset`'s methods.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eraser_hub.conversion.eraser.configs import CONFIGS, DEFAULT_CONFIG


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What a build did.

    Attributes:
        folder: the finished dataset folder.
        rows: config -> split (the dataset's names) -> number of rows.
        notes: lines for the user: files that were skipped and why, digests recorded, what the viewer will not like.
    """

    folder: Path
    rows: dict[str, dict[str, int]]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What an export wrote: the files, and lines for the user."""

    folder: Path
    files: list[Path]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class HubDataset:
    """A dataset and where its verbs are implemented (``module:function`` below ``eraser_hub.conversion``)."""

    name: str
    configs: tuple[str, ...]
    default_config: str
    build_at: str
    export_at: str
    check_at: str
    stats_at: str

    def build(
        self,
        configs: Sequence[str] | None,
        *,
        out: Path,
        source: Path | None = None,
        num_proc: int = 1,
        progress: bool = False,
        include_backup_records: bool = False,
    ) -> BuildResult:
        """Build ``out/NAME`` (card and Parquet) from raw files.

        Args:
            configs: which configurations; None takes those that ``source`` holds (all of them without a source).
            out: the folder that holds the dataset folders; the configs that stand there already are kept.
            source: a folder with one folder (or .tar.gz) per corpus; None downloads the releases.
            num_proc: processes at most; where there is little to do, no other one starts.
            progress: show progress on stderr.
            include_backup_records: take up records that stand in a release's backup file alone (movies' test.jsonl.bak).

        Raises:
            DataError: bad input; BusyError when another build is at work in ``out/NAME``.
        """
        return _function(self.build_at)(
            configs,
            out=Path(out),
            source=None if source is None else Path(source),
            num_proc=num_proc,
            progress=progress,
            include_backup_records=include_backup_records,
        )

    def export(self, dataset: Path, configs: Sequence[str] | None, *, out: Path) -> ExportResult:
        """Write the raw files of a built dataset folder back, below ``out/CONFIG``; nothing that stands there is overwritten."""
        return _function(self.export_at)(Path(dataset), configs, out=Path(out))

    def check(self, folder: Path, configs: Sequence[str] | None = None, *, leakage: bool = False) -> Any:
        """The integrity report of a raw folder or a built dataset folder (see `integrity`)."""
        return _function(self.check_at)(Path(folder), configs, leakage=leakage)

    def stats(self, folder: Path, configs: Sequence[str] | None = None) -> Any:
        """The papers' tables, recomputed (see `statistics`)."""
        return _function(self.stats_at)(Path(folder), configs)


def _function(at: str) -> Any:
    module, name = at.split(":")
    return getattr(importlib.import_module(f"eraser_hub.conversion.{module}"), name)


HUB_DATASETS: dict[str, HubDataset] = {
    "eraser": HubDataset(
        name="eraser",
        configs=tuple(CONFIGS),
        default_config=DEFAULT_CONFIG,
        build_at="eraser.build:build_eraser",
        export_at="eraser.export:export_eraser",
        check_at="eraser.check:check_eraser",
        stats_at="eraser.statistics:eraser_statistics",
    ),
    "bilingual_perturbation": HubDataset(
        name="bilingual_perturbation",
        configs=("senti_en", "senti_ch", "similarity_en", "similarity_ch", "mrc_en", "mrc_ch"),
        default_config="senti_en",
        build_at="bilingual_perturbation.build:build_bilingual_perturbation",
        export_at="bilingual_perturbation.build:export_bilingual_perturbation",
        check_at="bilingual_perturbation.check:check_bilingual_perturbation",
        stats_at="bilingual_perturbation.statistics:bilingual_perturbation_statistics",
    ),
    "human_rationales": HubDataset(
        name="human_rationales",
        configs=("sst", "wikiattack"),
        default_config="sst",
        build_at="human_rationales.build:build_human_rationales",
        export_at="human_rationales.build:export_human_rationales",
        check_at="human_rationales.check:check_human_rationales",
        stats_at="human_rationales.statistics:human_rationales_statistics",
    ),
}
