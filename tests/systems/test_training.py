"""The loop that trains, the folder in which it goes on, several values of a setting, several seeds."""

from __future__ import annotations

import json

import pytest

from eraser_hub import train
from eraser_hub.attribution import open_model
from eraser_hub.records.errors import BusyError
from eraser_hub.systems.folder import check_folder, working_folder
from eraser_hub.systems.training import make_system

from ..needs import needs
from ..refusals import refused

pytestmark = needs("torch", "transformers", "skops")
NETWORK = "embedding_size=4, hidden_size=4, dropout=0"


@pytest.fixture(autouse=True, scope="module")
def _late_imports() -> None:
    global torch, fitting, Line
    import torch

    from eraser_hub.systems import fitting

    class Line(fitting.Objective):
        """y = 2 x by a line with dropout, so that random numbers matter."""

        def __init__(self, scores=(), factor=1.0) -> None:
            torch.manual_seed(0)
            self.network = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
            self.device, self.scores, self.factor = torch.device("cpu"), list(scores), factor

        def examples(self, epoch):
            return [float(number + epoch) for number in range(10)]

        def size(self, example):
            return int(example)

        def loss(self, batch):
            x = torch.tensor(batch)[:, None] / 10
            return ((self.network(x) - 2 * x) ** 2).mean() * self.factor

        def validate(self):
            return {"accuracy": self.scores.pop(0), "loss": 1.0} if self.scores else {}


def make_settings(**more):
    return make_system("lstm", {"epochs": 4, "batch_size": 3, "learning_rate": 0.05, "patience": 0, **more})


def test_another_seed_gives_other_weights_and_steps_end_where_they_are_asked_to(tmp_path):
    rows = []
    for number, seed in enumerate((1, 1, 2)):
        (folder := tmp_path / str(number)).mkdir()
        objective = Line()
        assert fitting.fit(objective, make_settings(max_steps=5), seed, folder).step == 5
        rows.append([value.tolist() for value in objective.network.state_dict().values()])
    assert rows[0] == rows[1] != rows[2]


def test_training_stops_early_with_the_best_weights(tmp_path, caplog):
    objective = Line(scores=[0.5, 0.8, 0.7, 0.8, 0.6, 0.9])
    progress = fitting.fit(objective, make_settings(epochs=6, patience=2), 1, tmp_path)
    # 0.8 with the same loss is no better, so that two epochs in a row were not
    assert progress.best_epoch == 1 and [one["accuracy"] for one in progress.history] == [0.5, 0.8, 0.7, 0.8]
    assert caplog.messages[-1] == "stopped early: no better accuracy for 2 epochs than in epoch 2"
    best = torch.load(tmp_path / "best.pt", weights_only=True)
    assert all(torch.equal(value, best[name]) for name, value in objective.network.state_dict().items())
    assert "(best)" in caplog.messages[1] and "left" in caplog.messages[1]


def test_a_loss_that_is_not_finite_and_a_damaged_checkpoint_are_named(tmp_path):
    with refused("step 1", "nan", "`learning_rate`"):
        fitting.fit(Line(factor=float("nan")), make_settings(), 1, tmp_path)
    (tmp_path / "checkpoint.pt").write_bytes(b"cut")
    with refused(argument="resume", file="checkpoint.pt"):
        fitting.fit(Line(), make_settings(), 1, tmp_path)


def test_the_learning_rate_warms_up_and_decays():
    settings = make_settings(warmup_steps=4, linear_decay=True)
    assert [fitting.compute_rate(step, 10, settings) for step in (0, 2, 4, 7, 9)] == [0, 0.5, 1, 0.5, 1 / 6]
    assert fitting.compute_rate(9, 10, make_settings()) == 1


# --- the folder of a training ------------------------------------------------------------------------------------


def stop(out, identity, resume=False, checkpoint="checkpoint.pt"):
    """A training that is stopped after it wrote something; returns what it found."""
    with pytest.raises(KeyboardInterrupt), working_folder(out, identity, resume) as work:
        found = {path.name for path in work.iterdir()} - {"recipe.json"}
        if checkpoint:
            (work / checkpoint).write_bytes(b"half")
        raise KeyboardInterrupt
    return found


def test_what_a_stopped_training_leaves_is_gone_on_with_or_begun_anew(tmp_path, caplog):
    out = tmp_path / "m"
    assert stop(out, {"seed": 1}, checkpoint="") == set() and not out.exists(), "nothing to go on with: nothing is left"
    stop(out, {"seed": 1})
    with refused("seed", "1", "2", argument="resume"), working_folder(out, {"seed": 2}, True):
        pass
    assert stop(out, {"seed": 1}, resume=True) == {"checkpoint.pt"}
    assert stop(out, {"seed": 2}) == set(), "begun anew, with other settings"
    with working_folder(out, {"seed": 2}, True) as work:
        assert (work / "checkpoint.pt").read_bytes() == b"half"
        with pytest.raises(BusyError), working_folder(out, {"seed": 2}, True):
            pass
    assert not list(out.iterdir())
    with working_folder(out, {}, True):
        pass
    said = ("`resume`: continuing", "anew (`resume` continues it)", "`resume`: continuing", "no stopped training")
    assert all(words in line for words, line in zip(said, caplog.messages, strict=True))


def test_a_half_written_model_is_marked_until_another_is_saved(hub, tmp_path, monkeypatch):
    """Stopped while the model was saved, and again before the next one is."""
    out = tmp_path / "m"
    with monkeypatch.context() as patch, pytest.raises(OSError, match="full"):
        patch.setattr("shutil.copytree", lambda *_, **__: (_ for _ in ()).throw(OSError("the disk is full")))
        train(hub, f"glove-lstm({NETWORK}, max_steps=1)", config="movies", out=out)
    with refused(file=out):
        open_model(out)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("eraser_hub.systems.training.save_model", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        train(hub, f"glove-lstm({NETWORK}, max_steps=1)", config="movies", out=out)
    with refused(file=out):
        open_model(out)
    train(hub, f"glove-lstm({NETWORK}, max_steps=1)", config="movies", out=out)
    assert open_model(out).label_names == ("NEG", "POS")
    assert {path.name for path in out.iterdir()} == {"model.json", "vocabulary.json", "weights.safetensors"}


def test_other_folders_are_left_alone(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    (tmp_path / "file").write_text("")
    for wrong in ("other", "file"):
        with refused(argument="out", file=tmp_path / wrong):
            check_folder(tmp_path / wrong)
    with refused(argument="out"):
        check_folder(tmp_path / "other", str(tmp_path / "other"))


# --- the verb ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("train_on", ["full", "rationale"])
def test_what_training_found_on_validation_is_not_found_again(hub, tmp_path, monkeypatch, train_on):
    from eraser_hub.systems import training

    seen = []
    monkeypatch.setattr(training, "evaluate", lambda *args: seen.append(args) or {"accuracy": 0.5, "macro_f1": 0.5})
    call = f"bilstm({NETWORK}, epochs=2)"
    lines = train(hub, call, config="movies", train_on=train_on, out=tmp_path / "m").lines
    assert len(seen) == (train_on == "full") and len(lines) == 2 + len(seen)
    facts = json.loads((tmp_path / "m" / "model.json").read_text())
    figures = facts["epochs"][facts["best_epoch"] - 1]
    assert f"accuracy {figures['accuracy']:.3f}, macro F1 {figures['macro_f1']:.3f} (21 instances, " in lines[1]


def test_three_regimes_need_two_trainings(hub, tmp_path):
    lines = train(hub, "logistic-regression", config="movies", regimes=True, out=tmp_path / "m").lines
    assert [line.split(":")[0] for line in lines[1:]] == ["no-rationale", "eval-rationale", "train-eval-rationale"]
    assert json.loads((tmp_path / "m" / "model.json").read_text())["train_on"] == "full"


@pytest.mark.parametrize("name", ["glove-lstm", "lehman"])
def test_the_best_of_several_values_is_kept(hub, tmp_path, caplog, name):
    call = f"{name}({NETWORK}, epochs=2, learning_rate=[1e-6,0.05])"
    train(hub, call, config="movies", out=tmp_path / "m")
    facts = json.loads((tmp_path / "m" / "model.json").read_text())
    assert [one["settings"] for one in facts["grid"]] == ["learning_rate=1e-06", "learning_rate=0.05"]
    best = max(facts["grid"], key=lambda one: (one["accuracy"], -one["loss"]))
    assert f"learning_rate={facts['settings']['learning_rate']}" == best["settings"]
    assert f"search: {best['settings']} is the best by accuracy: {best['accuracy']:.4f}" in caplog.messages
    assert name == "lehman" or [len(one["epochs"]) for one in facts["grid"]] == [2, 2]
    with refused("`eval_split`", argument="model"):
        train(hub, call, config="movies", eval_split="", out=tmp_path / "n")


def test_seeds_are_trained_once(hub, tmp_path, caplog):
    folder, options = tmp_path / "m", {"config": "movies", "eval_split": ""}
    assert len(train(hub, "logistic-regression", **options, seeds=2, seed=3, out=folder).lines) == 2
    assert {path.name for path in folder.iterdir()} == {"train.json", "seed-3", "seed-4"}
    assert len(train(hub, "logistic-regression", **options, seeds=3, seed=3, out=folder).lines) == 1
    assert sum(line.endswith("trained before") for line in caplog.messages) == 2
    with refused("random-forest", argument="out", file=folder):
        train(hub, "random-forest", **options, seeds=2, out=folder)
    with refused("4294967296", argument="seeds"):
        train(hub, "logistic-regression", **options, seeds=2, seed=2**32 - 1, out=tmp_path / "n")


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"seed": -1}, "seed"),
        ({"seeds": 0}, "seeds"),
        ({"paper": "x"}, "paper"),
    ],
)
def test_wrong_arguments_are_refused(hub, tmp_path, options, argument):
    with refused(argument=argument):
        train(hub, "logistic-regression", config="movies", out=tmp_path / "m", **options)
