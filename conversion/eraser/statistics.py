"""The papers' tables of ``eraser``, recomputed from a built folder and compared with the printed figures.

Corpora of one's own have tables of their own, in which all documents of the rows count. Every corpus has the table of
its gold: rows with and without gold tokens, and the density, the mean share of gold tokens in documents with evidence.

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
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from eraser_hub.conversion.built import get_label_name, open_built, read_rows
from eraser_hub.papers import COMPREHENSIVE, load_paper
from eraser_hub.records.errors import DataError
from eraser_hub.records.tables import Cell, Table, Tables

from .check import MAIN_SPLITS
from .configs import CONFIGS, EraserConfig, get_annotators_path
from .corpus import find_corpus
from .flat_rows import FlatRows
from .human_agreement import BETWEEN, compute_annotator_agreement, human_agreement
from .release import read_configs
from .rows import find_covered_tokens
from .schema import SCHEMA

# config -> True if the query counts, as the printed lengths imply
COUNTS_QUERY = {"movies": False, "multirc": True, "fever": True, "esnli": False}
COLUMNS = ("annotation_id", "query", "classification", "documents", "evidences")
COSE_NOTE = (
    "CoS-E: the paper counts question and answers as the document, the release's documents hold the question alone "
    "and its query the answers; with the query's tokens added the rationale % is"
)


class SplitStatistics:
    """Sums for a split's figures, fed batch by batch.

    Attributes:
        instances, evidences, evidence_tokens: numbers of annotations, of spans, and of the spans' tokens.
        pairs, shares: number of (annotation, document with evidence), and the sum of their rationale shares.
        shares_with_query: the same sum, with the query's tokens as part of the document (CoS-E, see the notes).
        marked: number of annotations with gold tokens.
        density: sum over them of the share of gold tokens in their documents with evidence.
        lengths: float64 (labels, 4): annotations, tokens, rationale tokens, and the sum of their shares.
    """

    def __init__(self, config: EraserConfig) -> None:
        self.config, self.label_names, self.released = config.name, config.label_names, config.name in CONFIGS
        self.is_comprehensive = config.is_comprehensive
        self.lengths = np.zeros((len(config.label_names), 4))
        self.instances = self.evidences = self.evidence_tokens = self.pairs = 0
        self.marked = 0
        self.shares = self.shares_with_query = self.density = 0.0
        self.names = pa.array([], pa.string())
        self.counts = np.zeros((0, 2), np.int64)  # tokens and sentences of each
        self._names: list[pa.Array] = []
        self._counts: list[np.ndarray] = []

    def add(self, rows: pa.Table) -> None:
        """Add the next rows."""
        flat = FlatRows(rows)
        inside = flat.find_inside()
        if not inside.all():
            place = int(np.flatnonzero(~inside)[0])
            start, end = flat.start[place], flat.end[place]
            message = f"expected a span inside a document of the row, found [{start}, {end}); see `eraser-hub check`"
            raise DataError(message, instance=flat.ids[flat.span_row[place]])
        labels = rows["classification"].to_numpy()
        for place in np.flatnonzero((labels < -1) | (labels >= len(self.label_names)))[:1].tolist():
            get_label_name(int(labels[place]), self.label_names, instance=flat.ids[place])
        self.instances += rows.num_rows
        self.evidences += len(inside)
        self.evidence_tokens += int((flat.end - flat.start).sum())
        _, bounds = find_covered_tokens(flat.span_doc, flat.start, flat.end, flat.doc_counts[:, 0])
        with_evidence = np.unique(flat.span_doc)
        marked, lengths = np.diff(bounds)[with_evidence], flat.doc_counts[with_evidence, 0]
        self.pairs += len(with_evidence)
        self.shares += float((marked / np.maximum(lengths, 1)).sum())
        queries = rows["query"].combine_chunks()
        words = np.array([len(query.split()) for query in queries.to_pylist()], np.int64)
        longer = lengths + words[flat.doc_row[with_evidence]]
        self.shares_with_query += float((marked / np.maximum(longer, 1)).sum())
        tokens, marks = (
            np.bincount(flat.doc_row, weights=sizes, minlength=rows.num_rows)
            for sizes in (flat.doc_counts[:, 0], np.diff(bounds))
        )
        read = np.bincount(flat.doc_row[with_evidence], weights=lengths, minlength=rows.num_rows)
        self.marked += int((marks > 0).sum())
        self.density += float((marks[marks > 0] / read[marks > 0]).sum())
        if COUNTS_QUERY.get(self.config, False):
            tokens, marks = tokens + words, marks + words
        sums = np.stack([np.ones(len(tokens)), tokens, marks, marks / np.maximum(tokens, 1)], axis=1)
        np.add.at(self.lengths, labels[labels >= 0], sums[labels >= 0])
        counted = with_evidence if self.released else np.arange(len(flat.docids))
        names = flat.docids.cast(pa.string()).take(pa.array(counted))
        names, counts = _find_distinct_documents([names], [flat.doc_counts[counted]])
        self._names.append(names)
        self._counts.append(counts)

    def finish(self) -> None:
        """Count each document once."""
        self.names, self.counts = _find_distinct_documents(self._names, self._counts)
        self._names, self._counts = [], []

    def compute_figures(self, printed: Mapping[str, str]) -> dict[str, Cell]:
        """Return the split's row of Table 5."""
        values = {
            "documents": len(self.names),
            "instances": self.instances,
            "rationale_percent": 100 * self.shares / self.pairs if self.pairs else None,
            "evidences": self.evidences,
            "evidence_length": self.evidence_tokens / self.evidences if self.evidences else None,
        }
        digits = {"rationale_percent": 2}
        return {key: Cell(value, printed.get(key), digits.get(key, 1)) for key, value in values.items()}

    def describe_gold(self, split: str) -> dict[str, Cell]:
        """Return the split's row of the table of gold."""
        known = self.is_comprehensive(split)
        return {
            "marked_rows": Cell(self.marked),
            "unmarked_rows": Cell(self.instances - self.marked),
            "density_percent": Cell(100 * self.density / self.marked if self.marked else None, None, 2),
            "gold": Cell(COMPREHENSIVE[known]),
        }


def _find_distinct_documents(names: Sequence[pa.Array], counts: Sequence[np.ndarray]) -> tuple[pa.Array, np.ndarray]:
    if not names:
        return pa.array([], pa.string()), np.zeros((0, 2), np.int64)
    codes = pa.chunked_array(names, pa.string()).combine_chunks().dictionary_encode()
    _, first = np.unique(codes.indices.to_numpy(zero_copy_only=False), return_index=True)
    return codes.dictionary, np.concatenate(counts)[first]


def compute_statistics(folder: Path, configs: Sequence[str] | None = None, raw: Path | None = None) -> Tables:
    """Compute the tables of a built ``hub/eraser``.

    These are Tables 1, 2, 5 and 6 of the ERASER paper, and Table 2 and Figure 1 of Carton, Rathore and Tan (2020).
    Table 2 of ERASER needs the human-performance files; without them it has the printed figures only.

    Args:
        folder: the built folder.
        configs: names of configurations; all by default.
        raw: the folder of raw corpora from which it was built, if available.

    Raises:
        DataError: the folder cannot be read; an unknown configuration.
    """
    built = open_built(folder)
    by_config: dict[str, dict[str, SplitStatistics]] = {}
    agreement: dict[str, tuple[dict[str, Cell], str]] = {}
    people: dict[str, dict[str, Cell]] = {}
    facts = read_configs(built)
    for config in built.chosen(configs):
        splits = by_config[config] = {}
        for split, paths in built.splits(config).items():
            splits[split] = SplitStatistics(facts[config])
            for batch in read_rows(paths, COLUMNS, kinds=SCHEMA, whole=COLUMNS):
                splits[split].add(batch)
            splits[split].finish()
        corpus = None if raw is None else find_corpus(config, raw)
        kept = built.folder / get_annotators_path(config)
        if kept.is_file():
            own, people[config], note = compute_annotator_agreement(kept)
            agreement[config] = own, note
        else:
            agreement[config] = human_agreement(built, config, corpus)
    tables = make_tables(by_config, agreement, facts)
    tables.tables += [_make_gold_table(by_config)]
    tables.tables += [_make_annotators_table(people)] if people else []
    return tables


def make_tables(
    by_config: Mapping[str, Mapping[str, SplitStatistics]],
    agreement: Mapping[str, tuple[dict[str, Cell], str]],
    facts: Mapping[str, EraserConfig],
) -> Tables:
    """Return the tables from the sums of each configuration's splits, its annotators' agreement and its facts."""
    printed = load_paper("eraser_acl_2020").tables
    figures = ("documents", "instances", "rationale_percent", "evidences", "evidence_length")
    sizes = ("labels", "instances", "documents", "sentences", "tokens")
    one, five, six, two = (
        Table(name, printed[name].title, left, columns, printed[name].source)
        for name, left, columns in (
            ("table_1", ("config",), ("train", "validation", "test", "tokens")),
            ("table_5", ("config", "split"), figures),
            ("table_6", ("config",), sizes),
            ("table_2", ("config",), ("cohen_kappa", "f1", "p", "r", "annotators", "documents")),
        )
    )
    title = "Corpora of your own: labels, distinct documents, and their mean numbers of sentences and tokens"
    own_sizes = Table("sizes", title, ("config",), sizes)
    title = "Splits of your own corpora: documents, instances, rationale %, evidence statements and their mean length"
    evidence = Table("evidence", title, ("config", "split"), figures)
    evidence.notes.append("Rationale %: the mean share of tokens that evidence covers, over documents with evidence.")
    partial = []
    for config, splits in by_config.items():
        people, note = agreement.get(config, ({}, ""))
        about = printed["table_2"].row(config)
        if people or about:
            cells = {key: people.get(key, Cell(None)) for key in two.columns}
            two.add(config, **{key: replace(cell, printed=about.get(key)) for key, cell in cells.items()})
        two.notes += [note] if note else []
        released = config in CONFIGS
        main = {split: splits[split] for split in MAIN_SPLITS if split in splits} if released else splits
        first, sixth = printed["table_1"].row(config), printed["table_6"].row(config)
        cells = _compute_sizes(facts[config], main, sixth)
        (six if released else own_sizes).add(config, **cells)
        for split, sums in splits.items():
            row = sums.compute_figures(printed["table_5"].row(config, split))
            (five if released else evidence).add(config, split, **row)
        if released:
            counts = {split: main[split].instances if split in main else None for split in MAIN_SPLITS}
            counted = {split: Cell(count, first.get(split)) for split, count in counts.items()}
            one.add(config, **counted, tokens=replace(cells["tokens"], printed=first.get("tokens")))
            partial += [f"{config} ({', '.join(main)})"] if 0 < len(main) < len(MAIN_SPLITS) else []
        if config == "cose":
            shares = (
                f"{100 * of.shares_with_query / of.pairs:.1f} in {split}" for split, of in splits.items() if of.pairs
            )
            five.notes.append(f"{COSE_NOTE} {', '.join(shares)}.")
    if partial:
        for table in (one, six):
            table.notes.append(f"Over the splits that are there, not over all three: {'; '.join(partial)}.")
    main_lengths = {
        config: [splits[split].lengths for split in MAIN_SPLITS if split in splits]
        for config, splits in by_config.items()
    }
    if by_config.keys().isdisjoint(CONFIGS):
        two.title, two.source = "Agreement of each annotator with the majority of all", ""
    tables = [table for table in (one, five, six, own_sizes, evidence, two) if table.rows]
    return Tables("eraser", [*tables, *make_length_tables(main_lengths)])


def _make_gold_table(by_config: Mapping[str, Mapping[str, SplitStatistics]]) -> Table:
    columns = ("marked_rows", "unmarked_rows", "density_percent", "gold")
    title = "Gold rationales: rows with and without them, their share of the tokens, comprehensive or not"
    table = Table("gold", title, ("config", "split"), columns)
    for config, splits in by_config.items():
        for split, sums in splits.items():
            table.add(config, split, **sums.describe_gold(split))
    table.notes.append("Density %: the mean share of gold tokens in documents with evidence, over rows with gold.")
    return table


def _make_annotators_table(people: Mapping[str, Mapping[str, Cell]]) -> Table:
    """Return the table of the agreement between annotators, corrected for chance."""
    columns = [key for key in (*BETWEEN, "annotators", "documents") if any(key in cells for cells in people.values())]
    table = Table("annotators", "Agreement between annotators, corrected for chance", ("config",), tuple(columns))
    for config, cells in people.items():
        table.add(config, **{key: cells.get(key, Cell(None)) for key in columns})
    table.notes.append("Alpha and kappas are 0 by chance and at most 1; intervals: 95 %, bootstrap over documents.")
    table.notes.append("Annotators: fewest and most of a text, by their marks or labels.")
    return table


def _compute_sizes(
    facts: EraserConfig, splits: Mapping[str, SplitStatistics], printed: Mapping[str, str]
) -> dict[str, Cell]:
    """Return labels, instances and distinct documents of some splits, with the documents' mean lengths."""
    parts = splits.values()
    names, counts = _find_distinct_documents([sums.names for sums in parts], [sums.counts for sums in parts])
    tokens, sentences = (float(counts[:, k].mean()) if len(names) else None for k in (0, 1))
    figures = {
        "labels": len(facts.label_names),
        "instances": sum(sums.instances for sums in splits.values()),
        "documents": len(names),
        "sentences": sentences,
        "tokens": tokens,
    }
    return {name: Cell(value, printed.get(name)) for name, value in figures.items()}


def make_length_tables(by_config: Mapping[str, Sequence[np.ndarray]]) -> list[Table]:
    """Return Table 2 and Figure 1 of Carton et al. over the splits of each config in the paper; empty without one."""
    carton = load_paper("carton_2020").tables
    lengths, classes = carton["table_2"], carton["figure_1"]
    columns = ("rows", "text_length", "rationale_length", "rationale_percent")
    table = Table("carton_table_2", lengths.title, ("config",), columns, lengths.source)
    figure = Table("carton_figure_1", classes.title, ("config", "label"), ("rows", "rationale_percent"), classes.source)
    for config, splits in by_config.items():
        sums = np.sum(splits, axis=0)
        if config not in COUNTS_QUERY or not sums.any():
            continue
        count, tokens, marked, shares = sums.sum(axis=0).tolist()
        printed = lengths.row(config)
        table.add(
            config,
            rows=Cell(int(count)),
            text_length=Cell(tokens / count, printed.get("text_length")),
            rationale_length=Cell(marked / count, printed.get("rationale_length")),
            rationale_percent=Cell(100 * shares / count, printed.get("rationale_percent")),
        )
        for label, (rows, *_, share) in zip(CONFIGS[config].label_names, sums.tolist(), strict=True):
            value = 100 * share / rows if rows else None
            about = classes.row(config, label).get("rationale_percent")
            figure.add(config, label, rows=Cell(int(rows)), rationale_percent=Cell(value, about))
    table.notes.append(
        "Means over the annotations of train, validation and test as far as they are there. MultiRC and FEVER: "
        "the query's tokens count to text and rationale, as the printed lengths do."
    )
    return [each for each in (table, figure) if each.rows]
