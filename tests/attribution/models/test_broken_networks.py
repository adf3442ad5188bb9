"""Folders of transformers that are broken or hostile: one clear error each."""

from __future__ import annotations

import json
from pathlib import Path
from time import sleep

import pytest
from huggingface_hub.errors import HFValidationError

from eraser_hub.attribution import explain_texts, open_model
from eraser_hub.attribution.models import loading

from ...needs import needs
from ...refusals import refused
from ..conftest import WORDS, make_network, word_tokenizer

pytestmark = needs("torch", "transformers")
DEEP = "[" * 100_000 + "]" * 100_000
CONFIG = {"model_type": "bert", "architectures": ["BertForSequenceClassification"]}
BROKEN = {
    "config.json": ["", "[]", "{}", DEEP, json.dumps(CONFIG), '{"model_type": 7}', "\0", '{"architectures": 3}'],
    "tokenizer.json": ["", "[]", "{}", DEEP, '{"model": {"type": "BPE"}}', "\0"],
    "tokenizer_config.json": ["[]", DEEP, '{"tokenizer_class": 7}', '{"model_max_length": "x"}'],
    "model.safetensors": ["", "x", "\xff" * 64],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    out, tokenizer = tmp_path_factory.mktemp("model"), word_tokenizer(WORDS)
    make_network(tokenizer).save_pretrained(out)
    tokenizer.save_pretrained(out)
    return out


@pytest.mark.parametrize("kind", ["bert", "roberta", "llama"])
def test_a_model_without_its_tokenizer(folder, tmp_path, kind):
    """transformers makes a tokenizer of special tokens alone, by which every word is unknown."""
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    config = json.loads((tmp_path / "config.json").read_text()) | {"model_type": kind}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with refused("tokenizer.json", "vocab.txt", "tokenizer.save_pretrained", file=tmp_path):
        open_model(tmp_path)


@pytest.mark.parametrize(("name", "content"), [(name, text) for name, texts in BROKEN.items() for text in texts])
def test_a_broken_folder(folder, tmp_path, name, content):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / name).write_text(content, encoding="latin-1")
    with refused() as caught:
        explain_texts(str(tmp_path), ["a good film"])
    assert type(caught.error).__name__ == "DataError" and len(str(caught.error).splitlines()) == 1


@pytest.mark.parametrize(("name", "near"), [("mdoels/mien", "did you mean 'models/mine'?"), ("no-such-model", "Hub")])
@pytest.mark.parametrize("is_asked", [True, False])
def test_a_name_that_is_nowhere(tmp_path, monkeypatch, name, near, is_asked):
    """Told at once, whether the Hub has no such model or does not answer."""
    (tmp_path / "models" / "mine").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(loading, "HUB_SECONDS", 0.5)

    def answer(hub, name, timeout):
        sleep(0 if is_asked else 9)
        raise HFValidationError

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", answer)
    with refused("the Hub has no such" if is_asked else "does not answer", near, file=name):
        open_model(name)


def test_a_model_in_the_cache_needs_no_network(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda *_, **__: sleep(9))
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda name, file: "a file")
    monkeypatch.setattr(loading, "HUB_SECONDS", 0.1)
    options = [loading.find_loading_options(name, False)["local_files_only"] for name in ("org/m", str(tmp_path))]
    assert options == [True, False]
