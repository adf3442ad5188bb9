"""Every verb on every config of the samples, with predictions for all of a split, and for a part of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import eraser_hub
from eraser_hub import report, tokens
from eraser_hub.conversion import get_dataset, list_datasets
from eraser_hub.conversion.built import open_built

from ..command_line import invoke

Rows = list[dict[str, Any]]
ONE_OF_EACH = {"movies", "senti_en", "sst"}
each_config = pytest.mark.parametrize(
    ("name", "config"),
    [
        pytest.param(name, config, id=config, marks=() if config in ONE_OF_EACH else (pytest.mark.slow,))
        for name in list_datasets()
        for config in get_dataset(name).configs
    ],
)


@pytest.fixture(scope="session")
def hub(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All three datasets, built of the samples."""
    out = tmp_path_factory.mktemp("every") / "hub"
    for name in list_datasets():
        eraser_hub.build(name, samples / name, out=out)
    return out


def verb(*arguments: Any) -> str:
    """What a verb prints on stdout; it must succeed."""
    done = invoke(arguments)
    assert done.exit_code == 0, f"{arguments}\n{done.output}"
    return done.stdout


def answer(row: dict[str, Any], labels: tuple[str, ...], skip: int) -> dict[str, Any]:
    """A model's output for a row: it marks the first token, or the one after; its label is the first, or the last."""
    if "sample_type" in row:
        orders = [[*range(skip, len(sequence)), *range(skip)] for sequence in row["tokens"]]
        ranked = [[s[i] for i in order] for s, order in zip(row["tokens"], orders, strict=True)]
        return {"id": row["id"], "pred_label": 1, "rationale": [one[:1] for one in orders], "rationale_tokens": ranked}
    label = labels[-skip]
    p = {name: 0.75 if name == label else 0.25 / (len(labels) - 1) for name in labels} if labels[1:] else {label: 1.0}
    rationales = []
    names = [document["docid"] for document in row["documents"]] if "documents" in row else [row["id"]]
    for name, text in zip(names, tokens(row) if "documents" in row else [row["tokens"]], strict=True):
        hard = [{"start_token": skip - 1, "end_token": skip}][: len(text)]
        soft = [float(at == skip - 1) for at in range(len(text))]
        rationales.append({"docid": name, "hard_rationale_predictions": hard, "soft_rationale_predictions": soft})
    erased = {f"{side}classification_scores": p for side in ("", "comprehensiveness_", "sufficiency_")}
    found = {"annotation_id": row.get("annotation_id", row.get("id")), "classification": label}
    return found | erased | {"rationales": rationales}


def write(path: Path, rows: Rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def part_of(rows: Rows) -> Rows:
    """The first half; of pairs the first original and its perturbed records."""
    if "sample_type" not in rows[0]:
        return rows[: (len(rows) + 1) // 2]
    first = next(row for row in rows if row["rel_ids"])
    return [row for row in rows if row["id"] == first["id"] or row["id"] in first["rel_ids"]]


@each_config
@pytest.mark.parametrize("whole", [True, False])
def test_predictions_in_every_verb(hub, tmp_path, name, config, whole):
    """Report and comparison say the same scores as `score`, and a part says how much of the split it is."""
    built = open_built(hub / name)
    rows, labels = built.rows(config, "test"), built.label_names(config) or ("0", "1")
    kept = rows if whole else part_of(rows)
    one, two = (write(tmp_path / f"{k}.jsonl", [answer(row, labels, k) for row in kept]) for k in (1, 2))
    how: Any = {"config": config, "split": "test", "only_predicted": not whole}
    report(hub / name, [one, two], out=tmp_path / "r", resamples=5, **how)
    scores = eraser_hub.score(one, hub / name, **how)
    compared = eraser_hub.compare(predictions=[one, two], dataset=hub / name, resamples=5, **how)
    reported = json.loads((tmp_path / "r" / "1.scores.json").read_text())
    key = "map" if "sample_type" in rows[0] else "token_macro_f1"
    assert compared["scores"]["1"][key] == pytest.approx(reported[key], abs=1e-12) == scores[key]
    said = "scored:" if "sample_type" in rows[0] else f"scored:{len(kept)}/{len(rows)}"
    assert (said in str(scores.signatures)) == (not whole)


@each_config
def test_a_model_is_trained_explained_and_scored(hub, tmp_path, name, config):
    """From a config's rows to scores by the verbs alone, for a whole split and for the first two of its instances."""
    pytest.importorskip("sklearn", reason="skipped: the extra explain is not installed")
    built = open_built(hub / name)
    first, *_ = built.splits(config)
    where = ["--dataset", hub / name, "--config", config]
    features = "characters" if config.endswith("_ch") else "words"
    model = ["--model", f"logistic-regression(features={features})", "--split", first, "--eval-split", ""]
    verb("train", *where, *model, "--out", tmp_path / "whole")
    verb("train", *where, *model, "--limit", 6, "--train-on", "rationale", "--out", tmp_path / "part")
    out, count = tmp_path / "p.jsonl", len(built.rows(config, "test"))
    how = [*where, "--method", "coefficients", "--force", "--out", out]
    if "train" not in built.splits(config):  # whose rationales say how long one is
        how += ["--kd", 0.2]
    for trained, limit, part in (("whole", (), False), ("part", ("--limit", 2), True)):
        verb("explain", *how, "--model", tmp_path / trained, *limit)
        assert len(out.read_text(encoding="utf-8").splitlines()) == (2 if part else count)
        words = ["score", *where, "--predictions", out, "--format", "json"]
        refused = invoke(words)
        assert (refused.exit_code == 1) == (part and count > 2)
        assert not refused.exit_code or "`--only-predicted`" in refused.stderr
        scored = verb(*words, *(["--only-predicted"] if part else []))
        assert ("scored:" in scored) == (part and count > 2)


def test_a_papers_denominators_are_an_option_of_score(hub: Path, tmp_path: Path) -> None:
    """MAP over all perturbed gold records: of the pairs that are scored, as many of those that there are."""
    rows = open_built(hub / "bilingual_perturbation").rows("senti_en", "test")
    perturbed = [row["id"] for row in rows if row["sample_type"] == "disturb"]
    path = write(tmp_path / "p.jsonl", [answer(row, ("0", "1"), 1) for row in rows if row["id"] != perturbed[-1]])
    where: Any = {"dataset": hub / "bilingual_perturbation", "config": "senti_en"}
    part, paper = (
        eraser_hub.score(path, **where, **more) for more in ({"only_predicted": True}, {"paper": "wang2022"})
    )
    found = paper["map"] * len(perturbed) / part["map"]
    assert found == pytest.approx(part["pairs"]) and found < len(perturbed)
