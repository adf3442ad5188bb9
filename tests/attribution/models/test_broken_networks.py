"""Folders of transformers that are broken or hostile: one clear error each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eraser_hub.attribution import explain_texts, open_model

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


@pytest.mark.parametrize("name", ["mdoels/x", "no-such-model"])
def test_a_hub_id_that_is_nowhere(name):
    with refused("folder") as caught:
        open_model(name)
    assert len(str(caught.error).splitlines()) == 1


def test_the_hub_is_not_tried_without_a_network(tmp_path, monkeypatch):
    monkeypatch.setattr("socket.getaddrinfo", lambda *_: (_ for _ in ()).throw(OSError("no network")))
    monkeypatch.setattr("eraser_hub.attribution.models.words.getproxies", dict)
    from eraser_hub.attribution.models.words import find_loading_options

    assert [find_loading_options(name, False)["local_files_only"] for name in ("org/m", str(tmp_path))] == [True, False]
