"""Folders of transformers: damaged ones, tokenizers that drop or change characters, windows of every length."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .cases import Expect, World, mutates, plans
from .folders import half, one_of, scattered, spoils
from .material import LABELS, WORDS
from .values import GONE, VALUES, any_place, replace

BERT = "bert"
AVAILABLE = all(find_spec(name) for name in ("torch", "transformers"))


def write_network(folder: Path) -> None:
    """Save a random BERT of a few units over the stock's words, with its tokenizer."""
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(0)
    labels = LABELS["movies"]
    config = transformers.BertConfig(
        vocab_size=5 + len(WORDS),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=16,
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer().save_pretrained(folder)


def tokenizer(normalizer: Any = None, words: Sequence[str] = WORDS, window: int = 16, cuts: Any = None) -> Any:
    """A tokenizer of whole words."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    made = Tokenizer(models.WordPiece({word: number for number, word in enumerate(names)}, unk_token="[UNK]"))
    made.pre_tokenizer = cuts or pre_tokenizers.WhitespaceSplit()
    if normalizer is not None:
        made.normalizer = normalizer
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=window, **special)


def explain(method: str, name: str) -> None:
    """Register a plan: a network is explained."""

    def plan(draw: random.Random, stock: Path) -> World:
        world = World(draw, links={"hub": stock / "hub", BERT: stock / BERT}, outputs=("e.jsonl",))
        words = f"explain --dataset hub/eraser --config movies --split val --model {BERT} --out e.jsonl --quiet"
        world.argv = [*words.split(), "--device", "cpu", "--method", method]
        return world

    plan.__name__ = name
    plans("explain", "networks")(plan)


for _method in ("random", "gradient", "occlusion") if AVAILABLE else ():
    explain(_method, f"network_{_method}")

spoil = partial(spoils, "networks")
spoil("file_of_a_network", f"{BERT}/*", "anything", half, scattered, one_of(b"", b"{}", b"[]", b"[" * 3000, b"\xff"))


@mutates("networks")
def value_of_a_networks_json(world: World) -> Expect:
    """One hostile value, or a hole, in the configuration or the tokenizer."""
    name = world.random.choice(("config.json", "tokenizer.json", "tokenizer_config.json"))
    world.copies, draw = True, random.Random(world.random.random())

    def act(folder: Path) -> None:
        path = folder / BERT / name
        content = json.loads(path.read_bytes())
        replace(draw, *any_place(draw, content), [*VALUES, GONE])
        path.write_text(json.dumps(content))

    world.acts.append(act)
    return Expect("anything")


@mutates("networks")
def file_of_a_network_gone(world: World) -> Expect:
    world.copies, draw = True, random.Random(world.random.random())
    world.acts.append(lambda folder: draw.choice(sorted((folder / BERT).iterdir())).unlink())
    return Expect("anything")


def normalizers() -> dict[str, Callable[[], Any]]:
    from tokenizers import Regex
    from tokenizers import normalizers as known

    return {
        "drops letters": lambda: known.Replace("e", ""),
        "drops all": lambda: known.Replace(Regex("."), ""),
        "drops words": lambda: known.Replace(Regex("the|a"), ""),
        "drops blanks": lambda: known.Replace(" ", ""),
        "doubles letters": lambda: known.Replace("a", "aa a"),
        "prepends": lambda: known.Prepend("x "),
        "strips": lambda: known.Strip(),
        "upper": lambda: known.Sequence([known.NFKD(), known.StripAccents(), known.Lowercase()]),
    }


@mutates("networks")
def tokenizer_that_changes_the_text(world: World) -> Expect:
    world.copies = True
    name, make = world.random.choice(sorted(normalizers().items()))
    world.acts.append(lambda folder: tokenizer(make()).save_pretrained(folder / BERT))
    world.notes.append(f"the tokenizer {name}")
    return Expect("anything")


@mutates("networks")
def window(world: World) -> Expect:
    """From one sub-word to more than the network has places for."""
    size = world.random.choice((1, 2, 3, 4, 5, 8, 15, 16, 17, 512, 10**6))
    world.argv += ["--window", str(size)]
    return Expect("anything")


@mutates("networks")
def window_of_the_tokenizer(world: World) -> Expect:
    world.copies, size = True, world.random.choice((0, 1, 2, 3, 4, 7, 10**30))
    world.acts.append(lambda folder: tokenizer(window=size).save_pretrained(folder / BERT))
    world.notes.append(f"model_max_length {size}")
    return Expect("anything")
