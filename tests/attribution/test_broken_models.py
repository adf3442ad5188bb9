"""Model folders and files that are broken or hostile: one clear error each, soon."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("skops", reason="skipped: the extra explain is not installed")

from eraser_hub.attribution.explain import explain_texts
from eraser_hub.attribution.open import open_model

from ..refusals import refused

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ("[]", None),
        ("null", None),
        ("", None),
        ("{", None),
        (DEEP, None),
        ('{"window": "many"}', "window"),
        ('{"window": 0}', "window"),
        ('{"longest": 1e9}', "longest"),
        ('{"joiner": 7}', "joiner"),
        ('{"network": []}', "network"),
        ('{"network": "lehman", "stages": [".", ".."]}', "stages"),
    ],
)
def test_the_facts_of_a_model(tmp_path, content, field):
    (tmp_path / "model.json").write_text(content)
    with refused(file=tmp_path / "model.json", field=field):
        open_model(tmp_path)


def test_an_immense_file_of_facts(tmp_path, monkeypatch):
    with open(tmp_path / "model.json", "wb") as file:
        file.truncate(1 << 40)  # holes: they take no room
    with refused(file="model.json"):
        open_model(tmp_path)


SHAPE = {"labels": 2, "apart": False}


@pytest.mark.parametrize(
    "changed",
    [
        {"label_names": 7},
        {"label_names": ["NEG", None]},
        {"shape": {**SHAPE, "apart": 10**30}},
        {"width": "wide"},
        {"hyper": {"hight": 1}},
        {},
    ],
)
def test_a_network_with_an_odd_configuration(tmp_path, changed):
    config = {"system": "lstm", "label_names": ["NEG", "POS"], "hyper": {}, "shape": SHAPE, "width": 4, **changed}
    (tmp_path / "model.json").write_text('{"network": "lstm"}')
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "vocabulary.json").write_text('["good"]' if changed else "[" * 70 + "]" * 70)
    with refused(tmp_path):
        open_model(tmp_path)


def test_a_skops_bomb_is_not_unpacked(tmp_path):
    path = tmp_path / "bomb.skops"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("schema.json", "w") as schema:
        for _ in range(128):
            schema.write(b" " * (1 << 20))
    with refused("134,217,728", file=path):
        open_model(path)


@pytest.mark.parametrize("name", ["mdoels/x", "no-such-model", "./models/none", "a/b/c"])
def test_a_model_that_is_nowhere(name):
    with refused("folder") as caught:
        open_model(name)
    assert len(str(caught.error).splitlines()) == 1


CONFIG = {"model_type": "bert", "architectures": ["BertForSequenceClassification"]}
BROKEN = {
    "config.json": ["", "[]", "{}", DEEP, json.dumps(CONFIG), '{"model_type": 7}', "\0", '{"architectures": 3}'],
    "tokenizer.json": ["", "[]", "{}", DEEP, '{"model": {"type": "BPE"}}', "\0"],
    "tokenizer_config.json": ["[]", DEEP, '{"tokenizer_class": 7}', '{"model_max_length": "x"}'],
    "model.safetensors": ["", "x", "\xff" * 64],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    from .conftest import WORDS, word_tokenizer

    out, tokenizer = tmp_path_factory.mktemp("model"), word_tokenizer(WORDS)
    torch.manual_seed(0)
    sizes = dict.fromkeys(("hidden_size", "intermediate_size"), 8)
    config = transformers.BertConfig(vocab_size=len(tokenizer), num_hidden_layers=1, num_attention_heads=1, **sizes)
    transformers.BertForSequenceClassification(config).save_pretrained(out)
    tokenizer.save_pretrained(out)
    return out


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta-v2", "gpt2", "llama"])
def test_a_model_without_its_tokenizer(folder, tmp_path, kind):
    """transformers makes a tokenizer of special tokens alone, by which every word is unknown."""
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    config = json.loads((tmp_path / "config.json").read_text()) | {"model_type": kind}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with refused("tokenizer.json", "vocab.txt", "tokenizer.save_pretrained", file=tmp_path):
        open_model(tmp_path)


@pytest.mark.parametrize(("name", "content"), [(name, text) for name, texts in BROKEN.items() for text in texts])
def test_a_broken_folder_of_transformers(folder, tmp_path, name, content):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / name).write_text(content, encoding="latin-1")
    with pytest.raises(ValueError, match=r".") as caught:
        explain_texts(str(tmp_path), ["a good film"])
    assert type(caught.value).__name__ == "DataError", repr(caught.value)
    assert len(str(caught.value).splitlines()) == 1
