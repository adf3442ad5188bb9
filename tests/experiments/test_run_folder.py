"""Folders of runs: one at a time, the same settings, models trained once."""

from __future__ import annotations

from eraser_hub.experiments import run_folder
from eraser_hub.experiments.run_folder import hold_run_folder, train_once, train_seeds
from eraser_hub.records.errors import BusyError
from eraser_hub.systems.train import TrainResult

from ..refusals import refused


def test_another_run_or_another_folder_is_refused(tmp_path):
    out, settings = tmp_path / "out", {"seed": 1, "split": "test"}
    with hold_run_folder(out, "bench", settings), refused(type=BusyError), hold_run_folder(out, "bench", settings):
        pass
    with hold_run_folder(out, "bench", settings):
        (out / "file").write_text("ours")
    for other, words in (({**settings, "seed": 2}, "seed was 1, now 2"), ({"seed": 1}, "split was 'test', now None")):
        with refused(words, file=out, argument="out"), hold_run_folder(out, "bench", other):
            pass
    with refused("`reproduce`", file=out, argument="out"), hold_run_folder(out, "reproduce", settings):
        pass
    (out / "bench.json").write_text("{")
    with refused(file="bench.json"), hold_run_folder(out, "bench", settings):
        pass


def test_finished_models_are_kept_and_stopped_ones_go_on(tmp_path, monkeypatch):
    trained = []

    def train(out, resume, model, seed):
        trained.append((out.name, resume))
        out.mkdir(exist_ok=True)
        (out / "model.json").write_text("{}")
        return TrainResult(out, ["a line"])

    monkeypatch.setattr(run_folder, "train", train)
    assert train_seeds(tmp_path / "m", 4, 2, model="lstm") == tmp_path / "m"
    (tmp_path / "m" / "seed-5" / ".training").mkdir()
    train_seeds(tmp_path / "m", 4, 3, model="lstm")
    assert trained == [("seed-4", False), ("seed-5", False), ("seed-5", True), ("seed-6", False)]
    with refused("lstm(epochs=3)", argument="out"):
        train_seeds(tmp_path / "m", 4, 2, model="lstm(epochs=3)")
    assert train_once(tmp_path / "m" / "seed-4", model="lstm", seed=4).name == "seed-4" and len(trained) == 4
