"""Verbs of ``bilingual_perturbation``: the benchmark's files -> a Hub dataset folder -> the files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from eraser_hub.conversion.built import BuiltDataset
from eraser_hub.conversion.card import ConfigWords
from eraser_hub.conversion.dataset import read_file_ends
from eraser_hub.conversion.small_dataset import ConfigTables, SmallDataset, Sources
from eraser_hub.papers import load_paper
from eraser_hub.records.errors import DataError

from . import DATASET
from .check import NOTES, look_at_relations, look_at_row
from .configs import CONFIGS
from .format import read_gold, read_public
from .rows import NOT_NULL, SCHEMA, join, make_row
from .sources import HOMEPAGE, find_sources
from .statistics import LANGUAGES, TASKS, make_card_tables, make_tables

SPLIT = "test"


class BilingualPerturbationVerbs(SmallDataset):
    """The verbs, on six public files and their gold files."""

    facts = DATASET
    schema = SCHEMA
    whole = NOT_NULL
    wanted = (
        f"DIR, a folder that holds {' '.join(CONFIGS)} (and gold files such as senti_ch_golden.jsonl); "
        f"their authors give them out at {HOMEPAGE}"
    )
    words = {  # noqa: RUF012 - never written to
        name: ConfigWords(
            f"{TASKS[config.task].capitalize()} in {LANGUAGES[config.language]}: original and perturbed examples, "
            "with rationale sets of tokens where the gold file was at hand.",
            {"label": config.label_names},
            HOMEPAGE,
            citation=load_paper("wang_2022").citation,
        )
        for name, config in CONFIGS.items()
    }
    notes = NOTES
    one_folder = True
    related = ("id", "sample_type", "rel_ids", "original_id", "has_gold")
    find = staticmethod(find_sources)  # pyright: ignore[reportAssignmentType]
    look_at_row = staticmethod(look_at_row)  # pyright: ignore[reportAssignmentType]
    look_at_rows = staticmethod(look_at_relations)  # pyright: ignore[reportAssignmentType]
    stats = staticmethod(make_tables)  # pyright: ignore[reportAssignmentType]
    card_tables = staticmethod(make_card_tables)  # pyright: ignore[reportAssignmentType]

    def splits(self, files: Mapping[str, Path]) -> Iterable[str]:
        """Return the single split; the files are the public and the gold one."""
        return (SPLIT,)

    def read(self, config: str, sources: Sources, notes: list[str]) -> ConfigTables:
        """Read rows, and the files' lines as released, because rows cannot restore their many forms."""
        paths, facts = sources.files[config], CONFIGS[config]
        readers = {"public": read_public, "gold": read_gold}
        parsed = {kind: list(readers[kind](path, facts)) for kind, path in paths.items()}
        for kind, path in paths.items():
            if not parsed[kind]:
                raise DataError("expected a record a line, found an empty file", file=path, line=1)
        examples, reports = join(parsed.get("public"), parsed.get("gold"), facts)
        notes += [f"{config}: {report}" for report in reports]
        files: list[dict[str, Any]] = []
        records: list[tuple[str, int, str]] = []
        for kind, path in paths.items():
            name = path.relative_to(sources.root[config]).as_posix()
            lines = [record for example in examples if (record := getattr(example, kind)) is not None]
            files.append({"file": name, "kind": kind, **read_file_ends(path), "lines": len(lines)})
            records += sorted((name, record.line, record.text) for record in lines)
        rows = [make_row(example, facts) for example in examples]
        return ConfigTables({SPLIT: pa.Table.from_pylist(rows, schema=SCHEMA)}, files, records)

    def lines(
        self, config: str, file: Mapping[str, Any], kept: Mapping[int, str], built: Callable[[], BuiltDataset]
    ) -> list[str]:
        """Return the stored lines of a released file."""
        if sorted(kept) != list(range(1, file["lines"] + 1)):
            message = f"expected the {file['lines']} lines of {file['file']}, found {len(kept)}"
            raise DataError(message)
        return [kept[number] for number in sorted(kept)]


VERBS = BilingualPerturbationVerbs()
