"""Quotes as citations: the documents and sentences that they cite, against groups of evidence.

As in ALCE (Gao et al. 2023), where an entailment model judges; here the places of quotes and evidence are compared.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from .cells import Row, as_list, as_number
from .statistics_builder import ScoreInfo
from .tokens import split_sentences

Unit = tuple[str, int]  # a sentence: its document and number; of a whole document the number is -1
LEVELS = ("document", "sentence")
KEYS = (*(f"citation_{level}_{part}" for level in LEVELS for part in ("p", "r", "f1")), "citation_complete")
SCORES: ScoreInfo = dict.fromkeys(KEYS, (True, 0.0, 1.0))


def compute_citation(cited: Collection[Unit], groups: Sequence[Collection[Unit]]) -> tuple[float, float, float]:
    """Return precision, recall and F1 of cited units; groups are alternatives, each of which suffices.

    With C the cited units and G_1, G_2, .. the groups::

        P = |C and (G_1 or G_2 or ..)| / |C|      R = max over k of |C and G_k| / |G_k|      F1 = 2 P R / (P + R)

    All are 0 if nothing is cited.

    >>> compute_citation({("d", 0), ("d", 4)}, [{("d", 0), ("d", 1)}, {("e", 2)}])
    (0.5, 0.5, 0.5)
    """
    cited, union = set(cited), set().union(*groups)
    if not cited & union:
        return 0.0, 0.0, 0.0
    precision = len(cited & union) / len(cited)
    recall = max(len(cited & set(group)) / len(group) for group in groups)
    return precision, recall, 2 * precision * recall / (precision + recall)


class EvidenceGroups:
    """Groups of evidence of an annotation, in documents and in sentences.

    Args:
        reference: the annotation, with documents and evidences; parts of another form are left out.
    """

    def __init__(self, reference: Row) -> None:
        self.ends: dict[str, list[int]] = {}
        for document in as_list(reference.get("documents")) or ():
            named = isinstance(document, Mapping) and isinstance(document.get("docid"), str | int)
            if named and isinstance(document.get("text"), str):
                ends, total = [], 0
                for sentence in split_sentences(document["text"]):
                    total += len(sentence)
                    ends.append(total)
                self.ends[str(document.get("docid"))] = ends
        self.groups = []
        for group in as_list(reference.get("evidences")) or ():
            units = {unit for one in as_list(group) or () if isinstance(one, Mapping) for unit in self._find_units(one)}
            self.groups += [units] if units else []

    def _find_units(self, one: Row) -> set[Unit]:
        start, end = as_number(one.get("start_token")), as_number(one.get("end_token"))
        known = start is not None and end is not None and isinstance(one.get("docid"), str | int)
        return self.find_sentences(str(one.get("docid")), int(start or 0), int(end or 0)) if known else set()

    def find_sentences(self, docid: str, start: int, end: int) -> set[Unit]:
        """Return the sentences of a document that tokens [start, end) overlap; of an unknown one number 0."""
        if docid not in self.ends:
            return {(docid, 0)}
        first, units = 0, set[Unit]()
        for number, last in enumerate(self.ends[docid]):
            if first < end and start < last and start < end:
                units.add((docid, number))
            first = last
        return units

    def count(self, spans: Sequence[tuple[str, int, int]]) -> dict[str, float]:
        """Return the scores of an instance's quotes, {} without evidence.

        Args:
            spans: the quotes: document, first token, the token behind the last.
        """
        if not self.groups:
            return {}
        cited = {unit for span in spans for unit in self.find_sentences(*span)}
        whole = [{(docid, -1) for docid, _ in units} for units in (cited, *self.groups)]
        scores = (*compute_citation(whole[0], whole[1:]), *compute_citation(cited, self.groups))
        complete = any(group <= cited for group in self.groups)
        return dict(zip(KEYS, (*scores, float(complete)), strict=True))
