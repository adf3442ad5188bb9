"""Whose labels count: the corpus' own word, the caller's, the folder's name, the annotations'."""

from __future__ import annotations

from pathlib import Path

import pytest

from eraser_hub.scoring.result import Scores
from eraser_hub.scoring.score import score
from eraser_hub.scoring.scored_split import ScoredSplit

from ..command_line import invoke
from ..metrics.eraser_rows import random_case
from ..refusals import refused
from .small_corpora import Inputs, written

pytestmark = pytest.mark.unit

NAMES = {"NEG": "rot", "POS": "fresh"}


def labels_said(scored: Scores) -> list[str]:
    """The lines about labels."""
    return [note for note in scored.notes if note.startswith("labels:")]


def corpus(folder: Path, *, strange: int = 12) -> Inputs:
    """A corpus in a folder called movies, ``strange`` of whose twelve annotations have labels of their own."""
    predictions, references = random_case(3, n=12)
    for at, row in enumerate(references[:strange]):
        row["classification"] = NAMES[row["classification"]]
        own = predictions[at]
        for part in (own, *own["thresholded_scores"]):
            for key, value in part.items():
                if key.endswith("classification_scores"):
                    part[key] = {NAMES[label]: p for label, p in value.items()}
        own["classification"] = NAMES[own["classification"]]
    folder = folder / "movies"
    folder.mkdir()
    return written(folder, predictions, references)


def test_a_folder_that_happens_to_be_called_so_has_labels_of_its_own(tmp_path: Path) -> None:
    inputs = corpus(tmp_path)
    scored = score(*inputs)
    assert set(scored.label_report or ()) >= set(NAMES.values())
    assert any(note.startswith("labels: ") and "movies" in note for note in scored.notes)
    words = ["score", "--dataset", str(inputs.source.data_dir), "--split", "val", "--predictions", str(inputs.results)]
    done = invoke(words)
    assert done.exit_code == 0 and done.stderr.endswith(scored.notes[-1].replace("`config`", "--config") + "\n")


def test_one_label_of_the_config_and_others_are_offences(tmp_path: Path) -> None:
    with refused("'NEG', 'POS'", file="val.jsonl", line=1, field="classification") as caught:
        score(*corpus(tmp_path, strange=11))
    assert any(repr(name) in str(caught.first) for name in NAMES.values())


@pytest.mark.parametrize("labels", ["[rot, fresh]", "[NEG, POS]", "[true, false]"])
def test_the_corpus_own_word_counts_first(labels: str, tmp_path: Path) -> None:
    inputs = corpus(tmp_path)
    (tmp_path / "movies" / "corpus.yaml").write_text(f"name: reviews\nlabels: {labels}\n")
    if labels == "[rot, fresh]":
        assert labels_said(score(*inputs)) == []
        score(ScoredSplit(inputs.source.data_dir, "val", config="boolq"), inputs.results)
    else:
        with refused("'NEG', 'POS'" if "NEG" in labels else "labels"):
            score(*inputs)


def test_the_callers_word_counts_before_the_folders_name(tmp_path: Path) -> None:
    inputs = corpus(tmp_path, strange=0)
    assert labels_said(score(*inputs)) == []
    with refused("'False', 'True'", "'NEG'"):
        score(ScoredSplit(inputs.source.data_dir, "val", config="boolq"), inputs.results)
    with refused("movies, ", "'nothing'", argument="config"):
        score(ScoredSplit(inputs.source.data_dir, "val", config="nothing"), inputs.results)
