"""Perturbation pairs side by side."""

from __future__ import annotations

import json

import pytest

import eraser_hub
from eraser_hub.reports.documents import index_documents, unpack
from eraser_hub.reports.highlight import Highlight, highlight
from eraser_hub.reports.marked_pairs import find_lost_partners, mark_pair, pair_rows
from eraser_hub.scoring.scored_split import read_split

from ..refusals import refused


@pytest.fixture(scope="module")
def bilingual(samples, tmp_path_factory):
    from eraser_hub.conversion import get_dataset

    out = tmp_path_factory.mktemp("hub")
    get_dataset("bilingual_perturbation").build(None, out=out, source=samples / "bilingual_perturbation")
    return out / "bilingual_perturbation"


def predictions_for(rows):
    """A system that takes each sequence's longest tokens first."""
    out = []
    for row in rows:
        orders = [sorted(range(len(sequence)), key=lambda i, s=sequence: (-len(s[i]), i)) for sequence in row["tokens"]]
        out.append(
            {
                "id": row["id"],
                "rationale": [order[: max(1, len(order) // 4)] for order in orders],
                "rationale_tokens": [[s[i] for i in order] for s, order in zip(row["tokens"], orders, strict=True)],
                "pred_label": 1,
            }
        )
    return out


def test_a_report_counts_its_pairs(bilingual, tmp_path):
    rows = read_split(bilingual, "mrc_ch", "test").rows
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in predictions_for(rows)))
    files = eraser_hub.report(bilingual, tmp_path / "p.jsonl", config="mrc_ch", out=tmp_path / "out", resamples=20)
    assert f"{len(pair_rows(rows))} pairs" in files.page.read_text("utf-8")


def test_sides_ranks_and_shared_tokens():
    text = {"tokens": [["very", "good", "film", "good"]], "rationale_ids": [[[0, 1], [3]]], "language": "en"}
    original = {"id": "1", "sample_type": "ori", "rel_ids": ["2"], "label": 1, **text}
    perturbed = {"id": "2", "tokens": [["good", "movie"]], "sample_type": "disturb", "rel_ids": None, "label": 1}
    outputs = {
        "1": {
            "id": "1",
            "rationale": [[3, 1]],
            "rationale_tokens": [["good", "good", "film", "very"]],
            "pred_label": 0,
        },
        "2": {"id": "2", "rationale": [[0]], "rationale_tokens": [["good", "movie"]], "pred_label": 1},
    }
    ((a, b),) = pair_rows([original, perturbed])
    marked = mark_pair((a, b), outputs, ("neg", "pos"))
    assert (marked.label, marked.predicted_label, marked.right) == ("pos", "neg", False)
    assert marked.documents[0].gold == ((0, 2, 0), (3, 4, 1))
    assert marked.documents[0].predicted == ((1, 2), (3, 4))
    assert marked.ranks == ({1: 1, 3: 2}, {0: 1}) and marked.tops == (("good", "good"), ("good",))
    (chunk,) = map(unpack, index_documents([[marked]], ["s"]).packed)
    assert chunk["rows"][0]["pair"] and chunk["rows"][0]["titles"] == ["original", "perturbed"]
    assert chunk["rows"][0]["systems"][0]["shared"] == ["good"] and chunk["docs"][0]["lang"] == "en"


@pytest.mark.parametrize(
    ("change", "instance", "field", "mentions"),
    [
        (lambda o: o.pop("2"), "2", None, ()),
        (lambda o: o["1"].update(rationale=[[9]]), "1", "rationale[0]", ("below 2,", "found 9")),
        (lambda o: o["1"].update(rationale=[[True]]), "1", "rationale[0]", ("below 2,", "found True")),
        (lambda o: o["1"].update(rationale=[[0], [0]]), "1", "rationale", ("1 sequences", "[[0], [0]]")),
        (lambda o: o["1"].update(rationale_tokens="word"), "1", "rationale_tokens", ("1 sequences", "'word'")),
    ],
)
def test_outputs_that_do_not_fit(change, instance, field, mentions):
    rows = [
        {"id": "1", "tokens": [["a", "b"]], "sample_type": "ori", "rel_ids": ["2"], "label": None},
        {"id": "2", "tokens": [["a", "b"]], "sample_type": "disturb", "rel_ids": [], "label": None},
    ]
    outputs = {row["id"]: {"id": row["id"], "rationale": [[0]], "rationale_tokens": [["a", "b"]]} for row in rows}
    change(outputs)
    with refused(*mentions, instance=instance, field=field):
        mark_pair((rows[0], rows[1]), outputs)


def test_a_perturbed_record_that_is_not_there():
    """A part of a release names records that it lacks: their pairs are left out, which the report says."""
    rows = [
        {"id": "1", "tokens": [["a"]], "sample_type": "ori", "rel_ids": ["2", "3"]},
        {"id": "3", "tokens": [["a"]], "sample_type": "disturb", "rel_ids": []},
    ]
    assert pair_rows(rows) == [(rows[0], rows[1])] and find_lost_partners(rows) == ["2"]


def test_highlight_of_a_record_and_its_partner(bilingual, tmp_path):
    """In the terminal a pair stands as in the report: both sides, their marks and top tokens; alone in a notebook."""
    table = read_split(bilingual, "senti_en", "test")
    outputs = {str(row["id"]): row for row in predictions_for(table.rows)}
    pairs = pair_rows(table.rows)
    original, perturbed = pairs[1]
    shown = mark_pair(pairs[1], outputs, table.labels.names)
    text = str(Highlight(shown))
    assert f"original · {original['id']} · " in text and f"perturbed · {perturbed['id']} · " in text
    assert text.count("top tokens: ") == 2 and "⟦" in text
    assert Highlight(shown)._repr_html_().count("top tokens: ") == 2
    alone = str(highlight(original, outputs[str(original["id"])], label_names=table.labels.names))
    assert "perturbed" not in alone and "top tokens: " in alone
