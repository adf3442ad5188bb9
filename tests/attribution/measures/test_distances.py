"""How far erased inputs lie from training texts: distances in closed form, by each way of erasing, resumed, refused."""

from __future__ import annotations

import json
from dataclasses import replace
from shutil import copytree

import numpy as np
import pytest

from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.config import ExplainConfig
from eraser_hub.attribution.engine import explain_chunk
from eraser_hub.attribution.erasure import full, only, without
from eraser_hub.attribution.measures.distances import RIDGE, OodDistances, compute_entropies, fit_gaussian
from eraser_hub.attribution.run import explain
from eraser_hub.attribution.runner import Runner
from eraser_hub.attribution.settings import ExplainSettings
from eraser_hub.attribution.transformers.sequence_model import SequenceModel
from eraser_hub.schema.instance import DISTANCES, ENTROPIES

from ...needs import needs
from ...refusals import refused
from ..conftest import CLOSE, instance, told

pytestmark = needs("torch")


@pytest.fixture(autouse=True, scope="module")
def _late_imports() -> None:
    global torch
    import torch


SETTINGS = ExplainSettings(chunk=4, bins=(), distribution_texts=12)


def test_distances_in_closed_form():
    """Four points of a cross: covariance 2/3 I, ridge RIDGE 2/3; distance r is r / sqrt(2/3 (1 + RIDGE))."""
    cross = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
    gaussian = fit_gaussian(cross + 5)
    distances = gaussian.distances(np.array([[5.0, 5], [8, 9], [6, 5]]))
    expected = np.array([0, 5, 1]) / np.sqrt(2 / 3 * (1 + RIDGE))
    np.testing.assert_allclose(distances, expected, rtol=0, atol=1e-12)


def test_scale_does_not_matter_and_spread_does():
    random = np.random.default_rng(1)
    states, other = random.normal(size=(400, 3)), random.normal(size=(5, 3))
    scale = np.array([100.0] * 3)
    np.testing.assert_allclose(
        fit_gaussian(states * scale).distances(other * scale), fit_gaussian(states).distances(other), rtol=1e-9, atol=0
    )
    wide = fit_gaussian(states * [10, 1, 1])
    along, across = wide.distances(np.array([[5.0, 0, 0], [0, 5.0, 0]]))
    assert along < 1 < across
    # of their own states the squared distances average (n - 1) / n times the width, but for the ridge
    own = fit_gaussian(states).distances(states)
    assert abs((own**2).mean() - 3 * 399 / 400) <= 3 * 2 * RIDGE


def test_states_that_are_all_alike_and_fewer_than_directions():
    alike = fit_gaussian(np.ones((5, 3)))
    np.testing.assert_allclose(alike.distances(np.array([[1.0, 1, 1], [4, 5, 1]])), [0, 5], rtol=0, atol=1e-12)
    few = fit_gaussian(np.random.default_rng(1).normal(size=(3, 50)))
    assert np.isfinite(few.distances(np.zeros((1, 50)))).all()


def test_entropies_in_closed_form():
    values = compute_entropies(np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]))
    expected = [np.log(2), 0, -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))]
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-15)
    assert values[1] == 0 and not np.signbit(values[1])


@pytest.fixture
def model(network, tokenizer):
    # in float64: in float32 a state depends on what else stands in its batch, and whitening makes much of it
    adapter = SequenceModel(network().double(), tokenizer, device="cpu", precision="float32", description="tiny")
    align_labels(adapter, ("NEG", "POS"))
    return adapter


def test_states_are_the_mean_of_the_last_hidden_ones(model):
    """In batches of unlike lengths, padded and masked inputs, and long texts as the mean of their windows."""
    one, long = instance("the good film"), instance(" ".join(["bad", "plot"] * 30))
    encoded = [model.encode(one), model.encode(long)]
    runner = Runner(model, "remove", 8)
    states = runner.states(encoded, [full(0), without(0, [1]), full(1), only(0, [])])

    def mean(words: list[str]) -> np.ndarray:
        ids = [2, *(model.tokenizer.convert_tokens_to_ids(word) for word in words), 3]
        with torch.inference_mode():
            last = model.network(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states[-1]
        return last[0].double().mean(dim=0).numpy()

    np.testing.assert_allclose(states[0], mean(["the", "good", "film"]), rtol=0, atol=CLOSE)
    np.testing.assert_allclose(states[1], mean(["the", "film"]), rtol=0, atol=CLOSE)
    np.testing.assert_allclose(states[3], mean([]), rtol=0, atol=CLOSE)
    windows = [window.ids[1:-1] for window in encoded[1].whole()]
    parts = [mean(model.tokenizer.convert_ids_to_tokens(ids.tolist())) for ids in windows]
    assert len(parts) > 1
    np.testing.assert_allclose(states[2], np.mean(parts, axis=0), rtol=0, atol=CLOSE)
    masked = runner.with_operator("mask").states(encoded, [without(0, [1])])
    np.testing.assert_allclose(masked[0], mean(["the", "[MASK]", "film"]), rtol=0, atol=CLOSE)


def test_every_way_has_distances_of_its_own(model, hub):
    settings = replace(SETTINGS, also_erase=("mask",), kd=0.5, method="random")
    distances = OodDistances()
    assert distances.prepare(model, ExplainConfig(str(hub), "movies", "test", ""), settings) == ""
    runner, gaussian = Runner(model, "remove", 8), distances.gaussian
    first, second = explain_chunk(runner, [instance("the good film and a bad plot")], settings, measures=[distances])
    whole = DISTANCES[0], ENTROPIES[0]
    assert [first[name] for name in whole] == [second[name] for name in whole]
    for name in (*DISTANCES[1:], *ENTROPIES[1:]):
        assert first[name] != second[name] and first[name] >= 0
    side = list(first["sufficiency_classification_scores"].values())
    assert abs(first["entropy_sufficiency"] - compute_entropies(np.array([side]))[0]) <= CLOSE
    masked = runner.with_operator("mask").states([model.encode(instance("the good film and a bad plot"))], [full(0)])
    assert gaussian is not None and abs(gaussian.distances(masked)[0] - first["distance_whole"]) <= CLOSE


@pytest.fixture
def job(hub, linear):
    return ExplainConfig(dataset=str(hub), config="movies", split="val", model=str(linear), limit=6)


def test_a_linear_model_has_entropies_alone_and_says_so(job, tmp_path):
    report = explain(job, SETTINGS, tmp_path / "p.jsonl")
    assert told(report.lines(), "LogisticRegression", "no pooled state")
    (row, *_) = map(json.loads, (tmp_path / "p.jsonl").read_text().splitlines())
    assert {*ENTROPIES} <= {*row} and not {*DISTANCES} & {*row}
    assert "|distribution:12|" in report.signature
    record = json.loads((tmp_path / "p.jsonl.run.json").read_text())
    assert record["distribution"]["split"] == "train"
    explain(job, SETTINGS, tmp_path / "p.parquet")


def test_a_transformer_s_run_is_scored(hub, network, tokenizer, tmp_path):
    network().save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    job = ExplainConfig(
        dataset=str(hub), config="movies", split="val", model=str(tmp_path / "model"), limit=6, query=False
    )
    settings = replace(SETTINGS, method="random", chunk=2)
    whole = explain(job, settings, tmp_path / "p.jsonl")

    def stop(instances: int, passes: int) -> None:
        if instances:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        explain(job, settings, tmp_path / "q.jsonl", on_progress=stop)
    with refused("resume", "resume", "digest", "split", "'train'", "'validation'"):
        explain(replace(job, distribution_split="val"), settings, tmp_path / "q.jsonl", resume=True)
    assert explain(job, settings, tmp_path / "q.jsonl", resume=True).resumed == 2 < whole.instances
    assert (tmp_path / "p.jsonl").read_bytes() == (tmp_path / "q.jsonl").read_bytes()
    from eraser_hub.scoring.score import score
    from eraser_hub.scoring.scored_split import ScoredSplit
    from eraser_hub.scoring.settings import ScoreSettings

    label = "{name: classification, dtype: {class_label: {names: [NEG, POS]}}}"
    names = f"dataset_info: [{{config_name: movies, features: [{label}]}}]"
    copytree(hub, tmp_path / "named")
    card = (hub / "README.md").read_text().replace("configs:", f"{names}\nconfigs:", 1)
    (tmp_path / "named" / "README.md").write_text(card)
    source = ScoredSplit(split="validation", dataset=tmp_path / "named", config="movies")
    scored = score(source, tmp_path / "p.jsonl", ScoreSettings(only_predicted=True, per_instance=True))
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    for name in (*DISTANCES, *ENTROPIES):
        values = [row[name] for row in rows]
        flat = scored.blocks["faithfulness"]
        assert abs(flat[name] - np.mean(values)) <= CLOSE
        assert flat["per_instance"][name] == pytest.approx(values, abs=CLOSE)


def test_what_is_refused(job, tmp_path, hub):
    with refused("option-value", "distribution", "0", "2", "1"):
        ExplainSettings(distribution_texts=1)
    with refused("unsupported", "distribution"):
        SETTINGS.for_kind("perturbation")
    with refused("option-value", "split", "train, validation", "'weather'"):
        explain(replace(job, distribution_split="weather"), SETTINGS, tmp_path / "p.jsonl")
    assert not (tmp_path / "p.jsonl").exists()


def test_bounds_of_another_run_do_not_hang_on_distances(job, tmp_path):
    """A run that also tells distances takes the bounds of one that does not: both erase alike."""
    bounded = ExplainSettings(chunk=4, bins=(), aopc_bounds=True, units="sentences")
    explain(replace(job, limit=2), bounded, tmp_path / "p.jsonl")
    known = replace(job, limit=2, aopc_bounds_from=tmp_path / "p.jsonl")
    explain(known, replace(bounded, distribution_texts=12), tmp_path / "q.jsonl")
    first, second = (json.loads((tmp_path / name).read_text().splitlines()[0]) for name in ("p.jsonl", "q.jsonl"))
    assert first["aopc_bounds"]["upper"] == second["aopc_bounds"]["upper"] and "entropy_whole" in second


@pytest.mark.slow
def test_on_ray(hub, network, tokenizer, tmp_path):
    """Each worker fits the same distribution."""
    pytest.importorskip("ray")
    network().save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    job = ExplainConfig(
        dataset=str(hub), config="movies", split="val", model=str(tmp_path / "model"), limit=6, query=False
    )
    settings = replace(SETTINGS, method="random", chunk=2)
    explain(job, settings, tmp_path / "p.jsonl")
    explain(job, settings, tmp_path / "q.jsonl", engine="ray", workers=2)
    assert (tmp_path / "p.jsonl").read_bytes() == (tmp_path / "q.jsonl").read_bytes()
