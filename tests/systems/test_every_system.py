"""What every registered system must hold."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.dataset import open_split
from eraser_hub.attribution.erasure import full
from eraser_hub.attribution.open import open_model
from eraser_hub.attribution.runner import Runner
from eraser_hub.systems.hyper import Hyper
from eraser_hub.systems.system import SYSTEMS, Baseline, NetworkSystem, read_model
from eraser_hub.systems.train import train
from eraser_hub.systems.train_config import TrainConfig
from eraser_hub.systems.training import train_model

from ..attribution.conftest import make_hub
from ..needs import needs
from ..refusals import refused

pytestmark = needs("torch")
SMALL = {"embedding_size": 4, "hidden_size": 4}


@pytest.fixture
def encoder(network, tokenizer, tmp_path) -> str:
    network("BertModel", initializer_range=0.02).save_pretrained(tmp_path / "encoder")
    tokenizer.save_pretrained(tmp_path / "encoder")
    return str(tmp_path / "encoder")


def recipe_of(name: str, hub: Path, encoder: str) -> TrainConfig:
    """Two small steps of a system, with all that it needs."""
    system = SYSTEMS[name]
    recipe = TrainConfig(dataset=str(hub), config="movies", model=name, query="pairs" in system.needs or None)
    if not issubclass(system, NetworkSystem):
        return recipe
    sizes = [field.name for field in fields(system.hyper) if field.name in SMALL]
    hyper = tuple(f"{size}={SMALL[size]}" for size in sizes)
    window = 24 if system.encoder == "required" else None
    reads = encoder if system.encoder == "required" else ""
    return replace(recipe, hyper=hyper, max_steps=2, batch_size=4, encoder=reads, window=window)


def probabilities(model: Path, hub: Path) -> np.ndarray:
    adapter = open_model(model, device="cpu")
    split = open_split(str(hub), "movies", "validation")
    align_labels(adapter, split.label_names)
    encoded = [adapter.encode(adapter.seen(one)) for one in split.instances()]
    values = Runner(adapter, "remove", 8).run(encoded, [full(place) for place in range(len(encoded))])
    assert values.shape == (21, 2)
    return values


@pytest.mark.parametrize("name", SYSTEMS)
def test_it_is_trained_saved_and_opened_again(name, hub, encoder, tmp_path):
    recipe = recipe_of(name, hub, encoder)
    for folder in ("a", "b"):
        list(train_model(recipe, tmp_path / folder, figures=False))
    first = probabilities(tmp_path / "a", hub)
    np.testing.assert_allclose(first.sum(axis=1), 1, rtol=0, atol=1e-6)
    assert np.array_equal(first, probabilities(tmp_path / "a", hub))
    assert np.array_equal(first, probabilities(tmp_path / "b", hub)), "the same seed gives the same model"
    assert open_model(tmp_path / "a", device="cpu").selects is SYSTEMS[name].selects


@pytest.mark.parametrize("name", SYSTEMS)
def test_it_describes_itself(name, hub, encoder):
    system = SYSTEMS[name]
    assert (system.__doc__ or "").strip().endswith(".")
    assert issubclass(system, Baseline | NetworkSystem)
    recipe = recipe_of(name, hub, encoder)
    system().check(recipe)
    assert name in (train.__doc__ or ""), "the help names it"
    for setting in {"encoder", "hidden_size", "features", "luck"} - {
        *system.takes,
        *(field.name for field in fields(system.hyper or Hyper())),
    }:
        with refused(name, f"'{setting}'", argument="model"):
            read_model(f"{name}({setting}=1)")
    if issubclass(system, NetworkSystem) and system.encoder != "optional":
        with refused(name, argument="model"):
            system().check(replace(recipe, encoder="" if system.encoder == "required" else "a"))


@pytest.mark.parametrize("name", [name for name in SYSTEMS if SYSTEMS[name].needs])
def test_what_it_needs_and_does_not_get_is_refused(name, hub, encoder, tmp_path):
    recipe = recipe_of(name, hub, encoder)
    if "pairs" in SYSTEMS[name].needs:
        with refused(name):
            list(train_model(replace(recipe, query=False), tmp_path / "m"))
        return
    bare = make_hub(tmp_path / "bare", {"evidences": []}, {"evidences": []})
    with refused(name):
        list(train_model(replace(recipe, dataset=str(bare)), tmp_path / "m"))


def test_names_are_read_without_torch():
    import subprocess
    import sys

    code = (
        "import sys; from eraser_hub.systems.system import SYSTEMS; [SYSTEMS[name] for name in SYSTEMS]; "
        "sys.exit(bool({'torch', 'sklearn', 'transformers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
