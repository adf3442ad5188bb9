"""The papers' tables of ``eraser``, recomputed from a built folder and compared with the printed figures.

A corpus of one's own has tables of its own, in which all documents of the rows count. Every corpus has the table of its
gold: rows with and without gold tokens, and the density, the mean share of gold tokens in documents with evidence.

Definitions of the papers' tables, as they reproduce the printed figures:

- documents: distinct documents that an evidence refers to;
- rationale %: mean over (annotation, document with evidence) of the share of its tokens that any evidence covers;
- evidence statements: spans, in all groups; evidence length: their mean number of tokens;
- sentences, tokens: mean over the distinct documents of train, validation and test together;
- Table 2 and Figure 1 of Carton, Rathore and Tan (2020): means over annotations. A text is all of an annotation's
  documents; where the paper counts the query too (MultiRC, FEVER: "and the claim itself"), its tokens count to the text
  and to the rationale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from eraser_hub.conversion.built import BuiltDataset, get_label_name, read_rows
from eraser_hub.papers import COMPREHENSIVE, load_paper
from eraser_hub.records.errors import DataError
from eraser_hub.records.tables import EMPTY, Cell, Table, Tables

from .check import MAIN_SPLITS
from .configs import CONFIGS, EraserConfig, get_annotators_path
from .corpus import find_corpus
from .documents import Documents, open_documents
from .human_agreement import BETWEEN, compute_annotator_agreement, human_agreement
from .rows import PLACES, find_covered_tokens, flatten_rows
from .schema import SCHEMA

# config -> True if the query counts, as the printed lengths imply
COUNTS_QUERY = {"movies": False, "multirc": True, "fever": True, "esnli": False}
COLUMNS = ("annotation_id", "query", "classification", *PLACES)
SIZES = ("labels", "instances", "documents", "sentences", "tokens")
FIGURES = ("documents", "instances", "rationale_percent", "evidences", "evidence_length")
COSE_NOTE = (
    "CoS-E: the paper counts question and answers as the document, the release's documents hold the question alone "
    "and its query the answers; with the query's tokens added the rationale % is"
)


@dataclass(slots=True)
class SplitSums:
    """Sums over a split.

    Attributes:
        lengths: float64 (labels, 4): annotations, tokens, rationale tokens, and the sum of their shares.
        documents: the numbers of the distinct documents that count.
        instances, evidences, evidence_tokens: numbers of annotations, of spans, and of the spans' tokens.
        pairs, shares: number of (annotation, document with evidence), and the sum of their rationale shares.
        shares_with_query: the same sum, with the query's tokens as part of the document (CoS-E, see the notes).
        marked, density: number of annotations with gold tokens, and the sum over them of the share of gold tokens in
            their documents with evidence.
    """

    lengths: np.ndarray
    documents: np.ndarray
    instances: int = 0
    evidences: int = 0
    evidence_tokens: int = 0
    pairs: int = 0
    shares: float = 0.0
    shares_with_query: float = 0.0
    marked: int = 0
    density: float = 0.0


def sum_split(facts: EraserConfig, files: Sequence[Path], documents: Documents) -> SplitSums:
    """Return the sums over a split.

    Args:
        facts: of its configuration.
        files: its Parquet files.
        documents: those of the configuration.

    Raises:
        DataError: a file cannot be read, a document is unknown, a span lies outside, or a label has no name.
    """
    sums, used = SplitSums(np.zeros((len(facts.label_names), 4)), np.zeros(0, int)), [np.zeros(0, int)]
    whole = tuple(dict.fromkeys(name.partition(".")[0] for name in COLUMNS))
    for rows in read_rows(files, COLUMNS, kinds=SCHEMA, whole=whole):
        ids, labels = rows["annotation_id"], rows["classification"].to_numpy()
        flat = flatten_rows(rows, documents)
        for place in np.flatnonzero(flat.documents < 0)[:1]:
            message = f"expected documents of documents/{facts.name}.parquet, found another; see `eraser-hub check`"
            raise DataError(message, instance=ids[int(flat.document_rows[place])].as_py())
        lengths = documents.counts(flat.documents)[:, 0]
        for place in np.flatnonzero(~flat.are_inside(lengths))[:1]:
            found = f"[{flat.start[place]}, {flat.end[place]})"
            message = f"expected a span inside a document of the row, found {found}; see `eraser-hub check`"
            raise DataError(message, instance=ids[int(flat.span_rows[place])].as_py())
        for place in np.flatnonzero((labels < -1) | (labels >= len(facts.label_names)))[:1]:
            get_label_name(int(labels[place]), facts.label_names, instance=ids[int(place)].as_py())
        marks = np.diff(find_covered_tokens(flat.slots, flat.start, flat.end, lengths)[1])
        slots = np.unique(flat.slots)  # documents with evidence
        words = np.array([len(query.split()) for query in rows["query"].to_pylist()])
        sums.instances += len(rows)
        sums.evidences += len(flat.slots)
        sums.evidence_tokens += int((flat.end - flat.start).sum())
        sums.pairs += len(slots)
        sums.shares += float((marks[slots] / np.maximum(lengths[slots], 1)).sum())
        with_query = lengths[slots] + words[flat.document_rows[slots]]
        sums.shares_with_query += float((marks[slots] / np.maximum(with_query, 1)).sum())
        tokens, gold, read = (
            np.bincount(flat.document_rows[places], weights=sizes[places], minlength=len(rows))
            for places, sizes in ((slice(None), lengths), (slice(None), marks), (slots, lengths))
        )
        has_gold = gold > 0
        sums.marked += int(has_gold.sum())
        sums.density += float((gold[has_gold] / read[has_gold]).sum())
        if COUNTS_QUERY.get(facts.name):
            tokens, gold = tokens + words, gold + words
        row_sums = np.stack([np.ones(len(rows)), tokens, gold, gold / np.maximum(tokens, 1)], axis=1)
        np.add.at(sums.lengths, labels[labels >= 0], row_sums[labels >= 0])
        used.append(np.unique(flat.documents if facts.corpus_yaml else flat.documents[slots]))
    sums.documents = np.unique(np.concatenate(used))
    return sums


def make_tables(
    facts: Mapping[str, EraserConfig], built: BuiltDataset, configs: Sequence[str], raw: Path | None = None
) -> Tables:
    """Return the papers' tables of ERASER, or those of a corpus of one's own.

    They are Tables 1, 2, 5 and 6 of the ERASER paper, and Table 2 and Figure 1 of Carton, Rathore and Tan (2020).
    Table 2 of ERASER needs the human-performance files; without them it has the printed figures only.

    Args:
        facts: config -> what is known of it.
        built: the dataset.
        configs: some of its configurations.
        raw: the folder of raw corpora from which it was built, if available.

    Raises:
        DataError: the rows or the raw files are at fault.
    """
    printed = load_paper("eraser_acl_2020").tables
    is_own = any(facts[config].corpus_yaml for config in configs)
    title = "Corpora of your own: labels, distinct documents, and their mean numbers of sentences and tokens"
    sizes = Table("sizes", title, ("config",), SIZES)
    title = "Splits of your own corpora: documents, instances, rationale %, evidence statements and their mean length"
    per_split = Table("evidence", title, ("config", "split"), FIGURES)
    per_split.notes.append("Rationale %: the mean share of tokens that evidence covers, over documents with evidence.")
    people = ("cohen_kappa", "f1", "p", "r", "annotators", "documents")
    agreement = Table("table_2", "Agreement of each annotator with the majority of all", ("config",), people)
    instances = Table("table_1", printed["table_1"].title, ("config",), (*MAIN_SPLITS, "tokens"))
    if not is_own:
        sizes.name, per_split.name, per_split.notes = "table_6", "table_5", []
        for table in (instances, per_split, sizes, agreement):
            table.title, table.source = printed[table.name].title, printed[table.name].source
    title = "Gold rationales: rows with and without them, their share of the tokens, comprehensive or not"
    columns = ("marked_rows", "unmarked_rows", "density_percent", "gold")
    gold = Table("gold", title, ("config", "split"), columns)
    gold.notes.append("Density %: the mean share of gold tokens in documents with evidence, over rows with gold.")
    lengths, partial, between = dict[str, np.ndarray](), list[str](), list[Table]()
    for config in configs:
        documents = open_documents(built, config, with_texts=False)
        splits = {split: sum_split(facts[config], files, documents) for split, files in built.splits(config).items()}
        main = {split: splits[split] for split in (splits if is_own else MAIN_SPLITS) if split in splits}
        used = np.unique(np.concatenate([np.zeros(0, int), *(sums.documents for sums in main.values())]))
        tokens, sentences = documents.counts(used).mean(axis=0).tolist() if len(used) else (None, None)
        total = sum(sums.instances for sums in main.values())
        values: tuple[Any, ...] = len(facts[config].label_names), total, len(used), sentences, tokens
        sizes.add(config, **_make_cells(SIZES, values, printed["table_6"].row(config)))
        values = *(main[split].instances if split in main else None for split in MAIN_SPLITS), tokens
        instances.add(config, **_make_cells(instances.columns, values, printed["table_1"].row(config)))
        if not is_own and 0 < len(main) < len(MAIN_SPLITS):
            partial.append(f"{config} ({', '.join(main)})")
        for split, sums in splits.items():
            share = 100 * sums.shares / sums.pairs if sums.pairs else None
            length = sums.evidence_tokens / sums.evidences if sums.evidences else None
            values = len(sums.documents), sums.instances, share, sums.evidences, length
            cells = _make_cells(FIGURES, values, printed["table_5"].row(config, split))
            cells["rationale_percent"] = replace(cells["rationale_percent"], digits=2)
            per_split.add(config, split, **cells)
            gold.add(
                config,
                split,
                marked_rows=Cell(sums.marked),
                unmarked_rows=Cell(sums.instances - sums.marked),
                density_percent=Cell(100 * sums.density / sums.marked if sums.marked else None, None, 2),
                gold=Cell(COMPREHENSIVE[facts[config].is_comprehensive(split)]),
            )
        lengths[config] = np.sum([sums.lengths for sums in main.values()], axis=0)
        if config == "cose":
            shares = {split: sums.shares_with_query / sums.pairs for split, sums in splits.items() if sums.pairs}
            words = (f"{100 * share:.1f} in {split}" for split, share in shares.items())
            per_split.notes.append(f"{COSE_NOTE} {', '.join(words)}.")
        cells, others, note = _measure_people(facts[config], built, raw)
        between += [_make_annotators_table(config, others)] if others else []
        about = printed["table_2"].row(config)
        if cells or about:
            cells = {key: replace(cells.get(key, EMPTY), printed=about.get(key)) for key in people}
            agreement.add(config, **cells)
        agreement.notes += [note] if note else []
    if partial:
        for table in (instances, sizes):
            table.notes.append(f"Over the splits that are there, not over all three: {'; '.join(partial)}.")
    tables = [sizes, per_split, agreement] if is_own else [instances, per_split, sizes, agreement]
    tables += [*_make_length_tables(lengths), gold, *between]
    return Tables(configs[0] if is_own else "eraser", [table for table in tables if table.rows])


def _make_cells(columns: Sequence[str], values: Sequence[float | None], printed: Mapping[str, str]) -> dict[str, Cell]:
    return {name: Cell(value, printed.get(name)) for name, value in zip(columns, values, strict=True)}


def _measure_people(
    facts: EraserConfig, built: BuiltDataset, raw: Path | None
) -> tuple[dict[str, Cell], dict[str, Cell], str]:
    """Return a configuration's row of Table 2, its agreement between annotators, and a note."""
    if paths := built.paths(get_annotators_path(facts.name)) if facts.corpus_yaml else []:
        return compute_annotator_agreement(paths[0])
    corpus = find_corpus(facts.name, raw) if raw and not facts.corpus_yaml else None
    cells, note = human_agreement(built, facts.name, corpus)
    return cells, {}, note


def _make_annotators_table(config: str, cells: Mapping[str, Cell]) -> Table:
    """Return the table of the agreement between annotators, corrected for chance."""
    columns = tuple(key for key in (*BETWEEN, "annotators", "documents") if key in cells)
    table = Table("annotators", "Agreement between annotators, corrected for chance", ("config",), columns)
    table.add(config, **cells)
    table.notes.append("Alpha and kappas are 0 by chance and at most 1; intervals: 95 %, bootstrap over documents.")
    table.notes.append("Annotators: fewest and most of a text, by their marks or labels.")
    return table


def _make_length_tables(by_config: Mapping[str, np.ndarray]) -> list[Table]:
    """Return Table 2 and Figure 1 of Carton et al., given `SplitSums.lengths` of train, validation and test."""
    printed = load_paper("carton_2020").tables
    lengths, classes = printed["table_2"], printed["figure_1"]
    columns = ("rows", "text_length", "rationale_length", "rationale_percent")
    table = Table("carton_table_2", lengths.title, ("config",), columns, lengths.source)
    figure = Table("carton_figure_1", classes.title, ("config", "label"), ("rows", "rationale_percent"), classes.source)
    for config in (config for config, sums in by_config.items() if config in COUNTS_QUERY and sums.any()):
        count, tokens, marks, shares = by_config[config].sum(axis=0).tolist()
        values = int(count), tokens / count, marks / count, 100 * shares / count
        table.add(config, **_make_cells(columns, values, lengths.row(config)))
        for label, (count, *_, share) in zip(CONFIGS[config].label_names, by_config[config].tolist(), strict=True):
            mean = Cell(100 * share / count if count else None, classes.row(config, label).get("rationale_percent"))
            figure.add(config, label, rows=Cell(int(count)), rationale_percent=mean)
    table.notes.append(
        "Means over the annotations of train, validation and test as far as they are there. MultiRC and FEVER: "
        "the query's tokens count to text and rationale, as the printed lengths do."
    )
    return [table, figure]
