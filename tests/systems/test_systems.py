"""What every registered system must hold: trained, saved, opened and explained; what is planted it learns."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eraser_hub import explain, train
from eraser_hub.attribution import build_settings, explain_instances, open_model
from eraser_hub.records.predictions import read_signature
from eraser_hub.systems.system import BASELINES, SYSTEMS
from eraser_hub.systems.training import read_systems

from ..attribution.conftest import make_hub
from ..needs import needs
from ..refusals import refused

pytestmark = needs("torch", "transformers", "sklearn", "skops")
SELECTS = ("bert-to-bert", "lehman", "lei", "lei-unsupervised")
SIZES = "embedding_size=4, hidden_size=4, dropout=0"
OPTIONS = {
    **dict.fromkeys(SYSTEMS, SIZES),
    **dict.fromkeys(BASELINES, ""),
    "bert-lstm": "hidden_size=4, dropout=0, window=24, encoder=ENCODER",
    "bert-to-bert": "window=24, encoder=ENCODER",
    "match-lstm": f"query=True, {SIZES}",
}


def make_call(name: str, encoder: str, more: str = "max_steps=2, batch_size=4") -> str:
    """A small training of a system."""
    options = [OPTIONS[name], *([more] if name not in BASELINES else [])]
    return f"{name}({', '.join(filter(None, options))})".replace("ENCODER", encoder)


def read_bytes(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", SYSTEMS)
def test_it_is_trained_and_explained(name, hub, encoder, tmp_path):
    for folder in ("a", "b") if name != "random-forest" else ("a",):  # which takes long
        lines = train(hub, make_call(name, encoder), config="movies", out=tmp_path / folder).lines
    assert [line.split(":")[0] for line in lines[1:]] == ["no-rationale", "eval-rationale"]
    assert read_bytes(tmp_path / "a") == read_bytes(tmp_path / folder), "the same data and seed give the same bytes"
    facts = json.loads((tmp_path / "a" / "model.json").read_text())
    assert (facts["system"], facts["seed"], facts["label_names"]) == (name, 1, ["NEG", "POS"])
    assert encoder not in json.dumps(facts), "no place of this machine"
    model = open_model(tmp_path / "a", device="cpu")
    assert model.selects is (name in SELECTS) and facts["kind"] in ("network", "pipeline", "scikit-learn")
    for number, method in enumerate([None] if model.selects else ["occlusion", "gradient"]):
        if method == "gradient" and not model.embeds:
            continue
        out, where = tmp_path / f"{number}.jsonl", {"config": "movies", "split": "val", "limit": 3}
        explain(tmp_path / "a", hub, **where, method=method, out=out)
        assert read_signature(out).startswith("rationales:model" if model.selects else f"method:{method}")
        for line in out.read_text().splitlines():
            assert sum(json.loads(line)["classification_scores"].values()) == pytest.approx(1)


@pytest.mark.parametrize("name", ["bert-to-bert", "bilstm", "lehman", "lei"])  # each kind of training
def test_a_stopped_training_goes_on_to_the_same_bytes(name, hub, encoder, tmp_path, monkeypatch, caplog):
    from eraser_hub.systems import fitting

    call = make_call(name, encoder, "epochs=2, patience=0, batch_size=16")
    train(hub, call, config="movies", out=tmp_path / "whole", limit=24)
    save, calls = fitting._save, []

    def stop(content: Any, path: Path) -> None:
        save(content, path)
        calls.append(path.name)
        if calls.count("checkpoint.pt") == (3 if name in ("lehman", "bert-to-bert") else 1):
            raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "_save", stop)
    with pytest.raises(KeyboardInterrupt):
        train(hub, call, config="movies", out=tmp_path / "again", limit=24)
    monkeypatch.setattr(fitting, "_save", save)
    with refused("limit", "24", "20", argument="resume"):
        train(hub, call, config="movies", out=tmp_path / "again", limit=20, resume=True)
    caplog.clear()
    train(hub, call, config="movies", out=tmp_path / "again", limit=24, resume=True)
    assert sum(line.startswith("epoch") for line in caplog.messages) == 1
    if name != "lei":  # whose draws begin anew
        assert read_bytes(tmp_path / "again") == read_bytes(tmp_path / "whole")


UNSUPERVISED = (
    "learning_rate=0.01, epochs=30, batch_size=8, sparsity=1, contiguity=0, draws=4, free_epochs=5, entropy=0.01, "
    "random_selections=True"
)
SMALL = "embedding_size=12, hidden_size=12, dropout=0, patience=0, monitor=loss"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "method"),
    [
        (f"lstm({SMALL}, learning_rate=0.02, epochs=14, batch_size=8)", "attention"),
        (f"bilstm({SMALL}, learning_rate=0.02, epochs=6)", "integrated-gradients(steps=20)"),
        (f"glove-lstm({SMALL}, learning_rate=0.02, epochs=4)", "attention"),
        (f"match-lstm({SMALL}, learning_rate=0.02, epochs=10, batch_size=8)", "attention"),
        (f"lei({SMALL}, learning_rate=0.02, epochs=5)", None),
        # an encoder that has seen blind selections knows nothing by an empty one: both labels' words must be marked
        (f"lei-unsupervised({SMALL}, {UNSUPERVISED})", None),
        (f"lehman({SMALL}, learning_rate=0.02, epochs=5)", None),
        (f"lehman({SMALL}, learning_rate=0.02, epochs=5, cell=lstm)", None),
        ("bert-to-bert(encoder=E, epochs=12, learning_rate=3e-3, batch_size=16, window=32, warmup_steps=10)", None),
    ],
)
def test_it_learns_the_word_that_decides_and_a_selector_selects_it(call, method, planted, encoder, train_planted):
    asks = call.startswith("match")
    model = train_planted(call.replace("=E,", f"={encoder},"), query=asks)
    instances, right, hits, total = planted("test", 80, asks)[0], 0, 0, 0
    settings = build_settings(embeds=model.embeds, selects=model.selects, method=method)
    for one, found in zip(instances, explain_instances(model, instances, settings), strict=True):
        right += found["classification"] == one.label
        spans = found["rationales"][0]["hard_rationale_predictions"]
        tokens = {place for span in spans for place in range(span["start_token"], span["end_token"])}
        truth = set(np.flatnonzero(one.rationale[0]))
        if "soft_sentence_predictions" in found["rationales"][0]:
            bounds = list(pairwise(np.cumsum([0, *one.sentences[0]])))
            truth = {at for start, end in bounds if truth & {*range(start, end)} for at in range(start, end)}
        hits, total = hits + len(tokens & truth), total + len(tokens) + len(truth)
    assert right / len(instances) > 0.95
    assert method or 2 * hits / total > 0.95


def test_the_help_names_every_system_and_the_registry_knows_its_classes():
    for name in SYSTEMS:
        assert name in (train.__doc__ or "") and SYSTEMS.name_of(SYSTEMS[name]) == name
        assert (SYSTEMS[name].__doc__ or "").strip()


def test_defaults_are_the_papers():
    (lei,), (encoded,) = (read_systems(f"lei({more})")[1].values() for more in ("", "encoder=bert"))
    papers = (0.01, 2, 128, 0.2, 20, 5)
    assert (lei.sparsity, lei.contiguity, lei.hidden_size, lei.dropout, lei.epochs, lei.patience) == papers
    assert (lei.learning_rate, encoded.learning_rate, encoded.trained_layers) == (1e-3, 2e-5, 2)
    glove, bilstm = (next(iter(read_systems(name)[1].values())) for name in ("glove-lstm", "bilstm"))
    assert (glove.learning_rate, bilstm.epochs, bilstm.hidden_size) == (1e-2, 10, 200)


@pytest.mark.parametrize(
    ("call", "mentions"),
    [
        ("glove-lstm(sparsity=1)", ("glove-lstm", "'sparsity'")),
        ("lstm(hiden_size=1)", ("'hidden_size'",)),
        ("glove-lstn(epochs=1)", ("'glove-lstm'",)),
        ("bilstm(hidden_size=0)", ("hidden_size", "of at least 1")),
        ("logistic-regression(tokenizer=roberta-base)", ("carton2020",)),
        ("glove-lstm(encoder=bert-base-uncased)", ("encoder", "glove-lstm")),
        ("bert-lstm", ("encoder", "bert-lstm")),
        ("lei(encoder=a, embeddings=b)", ("embeddings", "encoder")),
        ("lstm(embeddings=nowhere.txt)", ("nowhere.txt",)),
        ("./nowhere", ("nowhere",)),
        ("https://me:secret@host/m", ("a user name and a password",)),
    ],
)
def test_settings_that_fit_no_system_are_refused(call, mentions, hub, tmp_path):
    with refused(*mentions, argument="model") as caught:
        train(hub, call, config="movies", out=tmp_path / "m")
    assert "secret" not in str(caught.error)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("name", ["lei", "lehman", "bert-to-bert"])
def test_a_system_that_learns_from_rationales_refuses_data_without_any(name, encoder, tmp_path):
    bare = make_hub(tmp_path / "bare", {"evidences": []}, {"evidences": []})
    with refused(name, "40", argument="model"):
        train(bare, make_call(name, encoder), config="movies", out=tmp_path / "m")
