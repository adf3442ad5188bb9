"""The loop that trains: resuming after an epoch, early stopping, clear words about what a stopped run left."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.attribution.dataset import open_split
from eraser_hub.attribution.open import open_model
from eraser_hub.records.errors import BusyError
from eraser_hub.systems.evaluation import evaluate_on
from eraser_hub.systems.folder import checkpoint_dir, mark_saving
from eraser_hub.systems.hyper import Hyper
from eraser_hub.systems.system import SYSTEMS
from eraser_hub.systems.train_config import TrainConfig
from eraser_hub.systems.training import train_model
from tests.attribution.conftest import told

from ..needs import needs
from ..refusals import refused

pytestmark = needs("torch")


@pytest.fixture(autouse=True, scope="module")
def _late_imports() -> None:
    global torch, fitting, training, Line, batch_by_length, fit, format_duration, compute_rate
    import torch

    from eraser_hub.systems import fitting, training
    from eraser_hub.systems.fitting import batch_by_length, compute_rate, fit, format_duration

    from .line import Line


def weights_of(objective):
    return [value.tolist() for value in objective.network.state_dict().values()]


def quiet(words):
    pass


HYPER = Hyper(epochs=4, batch_size=3, learning_rate=0.05, patience=0)


def test_another_seed_gives_other_weights_and_steps_end_where_they_are_asked_to(tmp_path):
    rows = []
    for number, seed in enumerate((1, 1, 2)):
        (folder := tmp_path / str(number)).mkdir()
        objective = Line()
        assert fit(objective, replace(HYPER, max_steps=5), seed, folder, quiet).step == 5 == objective.steps
        rows.append(weights_of(objective))
    assert rows[0] == rows[1] != rows[2]


def test_training_stops_early_with_the_best_weights(tmp_path):
    scores, words = [0.5, 0.8, 0.7, 0.8, 0.6, 0.9], []
    objective = Line(scores=scores)
    progress = fit(objective, Hyper(epochs=6, batch_size=3, patience=2), 1, tmp_path, words.append)
    # 0.8 with the same loss is no better, so that two epochs in a row were not
    assert progress.best_epoch == 1 and len(progress.history) == 4
    assert told(words[-1:], "stopped early", "accuracy", "2 epochs", "epoch 2")
    best = torch.load(tmp_path / "best.pt", weights_only=True)
    assert all(torch.equal(value, best[name]) for name, value in objective.network.state_dict().items())
    assert "(best)" in words[1] and "left" in words[1] and "validation accuracy 0.8000" in words[1]


def test_a_loss_that_is_not_finite_ends_in_clear_words(tmp_path):
    class Bad(Line):
        def loss(self, batch):
            return super().loss(batch) * float("nan")

    with refused("step 1", "nan", "`learning_rate`"):
        fit(Bad(), HYPER, 1, tmp_path, quiet)


def test_a_damaged_checkpoint_is_named(tmp_path):
    (tmp_path / "checkpoint.pt").write_bytes(b"cut")
    with refused(argument="resume", file="checkpoint.pt"):
        fit(Line(), HYPER, 1, tmp_path, quiet)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 50), max_size=300), st.integers(1, 9), st.integers(0, 5))
def test_every_example_is_in_one_batch(sizes, batch_size, seed):
    batches = batch_by_length(sizes, batch_size, np.random.default_rng(seed))
    assert sorted(number for batch in batches for number in batch) == list(range(len(sizes)))
    assert all(0 < len(batch) <= batch_size for batch in batches)
    assert batches == batch_by_length(sizes, batch_size, np.random.default_rng(seed))


def test_the_learning_rate_warms_up_and_decays():
    hyper = Hyper(warmup_steps=4, linear_decay=True)
    assert [compute_rate(step, 10, hyper) for step in (0, 2, 4, 7, 9)] == [0, 0.5, 1, 0.5, 1 / 6]
    assert compute_rate(9, 10, Hyper()) == 1
    assert [format_duration(seconds) for seconds in (0, 59.4, 61, 7500)] == ["0 s", "59 s", "1 min 1 s", "2 h 5 min"]


# --- the folder of a training ------------------------------------------------------------------------------------


def test_what_a_stopped_training_leaves_is_gone_on_with_or_begun_anew(tmp_path):
    out, words = tmp_path / "m", []
    with pytest.raises(KeyboardInterrupt), checkpoint_dir(out, {"seed": 1}, False, quiet) as folder:
        (folder / "checkpoint.pt").write_bytes(b"half")
        raise KeyboardInterrupt
    with refused("seed", "1", "2", argument="resume"):
        with checkpoint_dir(out, {"seed": 2}, True, quiet):
            pass
    with checkpoint_dir(out, {"seed": 1}, True, words.append) as folder:
        assert (folder / "checkpoint.pt").read_bytes() == b"half"
        with pytest.raises(BusyError), checkpoint_dir(out, {"seed": 1}, True, quiet):
            pass
    assert not out.exists() or not list(out.iterdir())
    with pytest.raises(KeyboardInterrupt), checkpoint_dir(out, {"seed": 1}, False, quiet) as folder:
        (folder / "checkpoint.pt").write_bytes(b"half")
        raise KeyboardInterrupt
    with checkpoint_dir(out, {"seed": 2}, False, words.append) as folder:
        assert not (folder / "checkpoint.pt").exists()
    assert len(words) == 2 and "continuing" in words[0] and told(words[1:], out, "anew", "`resume`")


def test_a_failure_before_the_first_checkpoint_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="wrong"), checkpoint_dir(tmp_path / "m", {}, False, quiet):
        raise ValueError("wrong")
    assert not (tmp_path / "m").exists()
    words = []
    with checkpoint_dir(tmp_path / "m", {}, True, words.append):
        pass
    assert len(words) == 1 and told(words, "`resume`", "no stopped training")


def recipe(hub, model, **more):
    return TrainConfig(dataset=str(hub), config="movies", model=model, **more)


NETWORK = ("embedding_size=4", "hidden_size=4")


@pytest.mark.parametrize("train_on", ["full", "rationale"])
def test_what_training_found_on_validation_is_not_found_again(hub, tmp_path, monkeypatch, train_on):
    seen = list[bool]()

    def counted(model, split, *, rationale_only, **more):
        seen.append(rationale_only)
        return evaluate_on(model, split, rationale_only=rationale_only, **more)

    monkeypatch.setattr(training, "evaluate_on", counted)
    job = recipe(hub, "bilstm", hyper=NETWORK, epochs=2.0, train_on=train_on)
    _, first, *others = train_model(job, tmp_path / "m", say=quiet)
    assert seen == [True] * (train_on == "full") and len(others) == len(seen)
    again = evaluate_on(
        open_model(tmp_path / "m"), open_split(str(hub), "movies", "validation"), rationale_only=train_on == "rationale"
    )
    assert f"accuracy {again.accuracy:.3f}, macro F1 {again.macro_f1:.3f} ({again.instances} instances, " in first


def test_a_stopped_training_is_resumed(hub, tmp_path):
    job = {"model": "glove-lstm", "hyper": NETWORK, "epochs": 2.0}

    def stop(words):
        if words.startswith("epoch 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(train_model(recipe(hub, **job), tmp_path / "m", say=stop))
    assert (tmp_path / "m" / ".training" / "checkpoint.pt").is_file()
    said = list[str]()
    list(train_model(recipe(hub, **job, resume=True), tmp_path / "m", say=said.append))
    assert sum(line.startswith("epoch") for line in said) == 1
    assert not (tmp_path / "m" / ".training").exists() and open_model(tmp_path / "m").label_names == ("NEG", "POS")


def test_a_model_that_was_half_written_is_refused_and_trained_again(hub, tmp_path):
    job = recipe(hub, "glove-lstm", hyper=NETWORK, max_steps=1)
    with (
        pytest.raises(OSError, match="full"),
        checkpoint_dir(tmp_path / "m", {}, False, quiet),
        mark_saving(tmp_path / "m"),
    ):
        (tmp_path / "m" / "weights.safetensors").write_bytes(b"half")
        raise OSError("the disk is full")
    with refused(file=tmp_path / "m"):
        open_model(tmp_path / "m")
    list(train_model(job, tmp_path / "m", say=quiet))
    assert open_model(tmp_path / "m").label_names == ("NEG", "POS")
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == [
        "config.json",
        "model.json",
        "vocabulary.json",
        "weights.safetensors",
    ]


@pytest.mark.slow
def test_another_model_takes_a_folder_over(hub, tmp_path):
    for model in ("logistic-regression", "glove-lstm", "logistic-regression"):
        more = {} if model == "logistic-regression" else {"hyper": NETWORK, "max_steps": 1}
        list(train_model(recipe(hub, model, **more), tmp_path / "m", say=quiet))
        opened = open_model(tmp_path / "m")
        assert ("LogisticRegression" in opened.description) == (model == "logistic-regression")


# --- hyper-parameters --------------------------------------------------------------------------------------------


def test_every_system_says_its_hyper_parameters(hub, tmp_path):
    job = recipe(hub, "lei", hyper=(*NETWORK, "sparsity=0.25"), max_steps=1, learning_rate=0.5)
    list(train_model(job, tmp_path / "m", say=quiet))
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    own = {"max_steps": 1, "learning_rate": 0.5, "embedding_size": 4, "hidden_size": 4, "sparsity": 0.25}
    assert config["hyper"] == {**asdict(SYSTEMS["lei"].hyper), **own}
    assert config["seed"] == 1 and config["system"] == "lei" and config["label_names"] == ["NEG", "POS"]


@pytest.mark.parametrize(
    ("more", "mentions"),
    [
        ({"hyper": ("sparsity=1",)}, ("model", "epochs", "'sparsity=1'")),
        ({"hyper": ("hidden_size=big",)}, ("hidden_size", "integer", "'big'")),
        ({"epochs": 0.0, "max_steps": None}, ("epochs", "more than 0", "untrained")),
        ({"hyper": ("epochs=0",), "max_steps": None}, ("epochs", "more than 0", "untrained")),
        ({"learning_rate": 0.0}, ("learning_rate", "more than 0", "untrained")),
        ({"hyper": ("hidden_size=0",)}, ("hidden_size", "1", "0")),
        ({"model": "lehman", "hyper": ("sentences=0",)}, ("sentences", "1", "0")),
        ({"hyper": ("dropout=1",)}, ("dropout", "0 to below 1", "1.0")),
        ({"hyper": ("clip=-1",)}, ("clip", "1e+12", "-1.0")),
        ({"hyper": ("clip=nan",)}, ("clip", "1e+12", "nan")),
        ({"hyper": ("learning_rate=1e38",)}, ("learning_rate", "1e+12", "1e+38")),
        ({"hyper": ("lowercase=maybe",)}, ("lowercase", "true or false", "'maybe'")),
        ({"hyper": ("monitor=luck",)}, ("monitor", "accuracy", "'luck'")),
        ({"encoder": "bert-base-uncased"}, ("encoder", "glove-lstm", "embeddings")),
        ({"model": "bert-lstm"}, ("encoder", "bert-lstm")),
        ({"model": "lei", "encoder": "a", "embeddings": "b"}, ("embeddings", "encoder")),
        ({"embeddings": "nowhere.txt"}, ("embeddings", "nowhere.txt")),
    ],
)
def test_options_that_fit_no_system_are_refused(hub, tmp_path, more, mentions):
    with refused(*mentions):
        list(train_model(recipe(hub, **{"model": "glove-lstm", **more}), tmp_path / "m", say=quiet))
    assert not (tmp_path / "m").exists()


def test_defaults_are_the_papers():
    lei, with_encoder = (
        SYSTEMS["lei"]().make_hyper(TrainConfig(dataset="d", model="lei", encoder=encoder)) for encoder in ("", "bert")
    )
    assert (lei.sparsity, lei.contiguity, lei.hidden_size, lei.dropout, lei.epochs, lei.patience) == (
        0.01,
        2,
        128,
        0.2,
        20,
        5,
    )
    assert (lei.learning_rate, with_encoder.learning_rate, with_encoder.trained_layers) == (1e-3, 2e-5, 2)
    assert SYSTEMS["glove-lstm"].hyper.learning_rate == 1e-2
    assert (SYSTEMS["bilstm"].hyper.epochs, SYSTEMS["bilstm"].hyper.hidden_size) == (10, 200)


def test_figures_may_be_left_out(hub, tmp_path):
    """Who scores predictions himself waits for no evaluation of the whole split; what was trained is the same."""
    job = recipe(hub, "logistic-regression")
    with_figures = list(train_model(job, tmp_path / "a", say=quiet))
    without = list(train_model(job, tmp_path / "b", say=quiet, figures=False))
    assert len(without) == 1 and told(without, tmp_path / "b", "logistic-regression", "full", "train")
    assert len(with_figures) == 3
    for name in ("model.json", "model.skops"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.slow
def test_the_best_of_a_grid_is_kept(hub, tmp_path):
    words = []
    job = recipe(hub, "glove-lstm", hyper=NETWORK, epochs=2.0, grid=("learning_rate=1e-6,0.05",))
    list(train_model(job, tmp_path / "m", say=words.append))
    facts = json.loads((tmp_path / "m" / "model.json").read_text())
    assert [one["settings"] for one in facts["grid"]] == [["learning_rate=1e-6"], ["learning_rate=0.05"]]
    scores = [one["accuracy"] for one in facts["grid"]]
    assert scores[1] > scores[0]
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["hyper"]["learning_rate"] == 0.05
    assert told(words, "search", "learning_rate=0.05", "best", f"accuracy: {scores[1]:.4f}")

    def stop(words):
        if words.startswith("search: 2 of 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(train_model(job, tmp_path / "again", say=stop))
    said = []
    list(train_model(replace(job, resume=True), tmp_path / "again", say=said.append))
    assert (tmp_path / "again" / "weights.safetensors").read_bytes() == (
        tmp_path / "m" / "weights.safetensors"
    ).read_bytes()
    assert sum(line.startswith("epoch") for line in said) == 2  # of the second alone


@pytest.mark.parametrize(
    ("grid", "mentions"),
    [
        (("learning_rate",), ("model", "'learning_rate'")),
        (("clip=1,1",), ("model", "'clip=1,1'")),
        (("clip=1,2", "clip=3"), ("model", "'clip=3'")),
        (("luck=1,2",), ("model", "epochs", "'luck=1'")),
        (("hidden_size=1,x",), ("hidden_size", "integer", "'x'")),
        (("clip=1,2,3,4,5,6,7,8,9,10,11", "dropout=0,.1,.2,.3,.4,.5,.6,.7,.8,.9"), ("model", "100", "110")),
    ],
)
def test_grids_that_cannot_be_searched_are_refused(hub, tmp_path, grid, mentions):
    with refused(*mentions):
        list(train_model(recipe(hub, "glove-lstm", grid=grid), tmp_path / "m", say=quiet))


@pytest.mark.parametrize("model", ["glove-lstm", "lehman"])
def test_a_grid_needs_something_to_choose_by(hub, tmp_path, model):
    job = replace(recipe(hub, model, hyper=NETWORK, grid=("clip=1,2",)), eval_split="")
    with refused("`eval_split`", argument="model"):
        list(train_model(job, tmp_path / "m", say=quiet))


# --- marks of models that are not whole -----------------------------------------------------------------------------


@pytest.mark.parametrize("checkpoint", [True, False])
@pytest.mark.parametrize("resume", [True, False])
def test_the_mark_of_a_half_written_model_stays_until_another_is_saved(checkpoint, resume, tmp_path):
    """Killed while the model was saved, begun anew, and killed again before the new model is saved."""
    out = tmp_path / "m"
    with pytest.raises(KeyboardInterrupt), checkpoint_dir(out, {"seed": 1}, False, quiet) as folder:
        if checkpoint:
            (folder / "checkpoint.pt").write_bytes(b"whole")
        with mark_saving(out):
            (out / "model.json").write_text('{"network": "glove-lstm"}')
            raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt), checkpoint_dir(out, {"seed": 1}, resume, quiet) as folder:
        assert (folder / "checkpoint.pt").exists() == (checkpoint and resume)
        raise KeyboardInterrupt
    with refused(file=out):
        open_model(out)
    with checkpoint_dir(out, {"seed": 1}, False, quiet), mark_saving(out):
        pass
    assert [path.name for path in out.iterdir()] == ["model.json"]


def test_the_settings_of_a_stopped_training_are_those_of_its_checkpoint(tmp_path):
    """Killed before its first checkpoint, begun anew with other settings, and killed after one."""
    out = tmp_path / "m"
    (out / ".training").mkdir(parents=True)
    (out / ".training" / "recipe.json").write_text('{"seed": 1}')
    (out / ".training" / "trial-1").mkdir()
    with pytest.raises(KeyboardInterrupt), checkpoint_dir(out, {"seed": 2}, False, quiet) as folder:
        assert not (folder / "trial-1").exists()
        (folder / "checkpoint.pt").write_bytes(b"of seed 2")
        raise KeyboardInterrupt
    with refused("seed", argument="resume"), checkpoint_dir(out, {"seed": 1}, True, quiet):
        pass
    with checkpoint_dir(out, {"seed": 2}, True, quiet) as folder:
        assert (folder / "checkpoint.pt").read_bytes() == b"of seed 2"
