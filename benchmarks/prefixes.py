"""What a prompted model saves where inputs begin alike: each word of a text left out in turn.

    python -m benchmarks.prefixes [MODEL]       a folder or a GGUF file; without one a random Llama

The instructions before the text have as many words as the text. Both ways run in turn, in the same batches, each
three times; seconds are the processor's, the least of each way. The random model has 8 layers of width 512.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.config import Prompting
from eraser_hub.attribution.erasure import full, without
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.open import open_model
from eraser_hub.attribution.runner import Runner
from eraser_hub.attribution.transformers.prompted import PromptedModel

LABELS, WORDS = ("NEG", "POS"), ("good", "bad", "long", "film", "plot", "and", "the", "warm")
TURNS = 3


def make_model(folder: Path) -> str:
    """Save a random Llama with a tokenizer of words; the folder's name."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=512, hidden_size=512, num_hidden_layers=8, num_attention_heads=8, intermediate_size=2048
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    vocabulary = {word: number for number, word in enumerate(("<unk>", "</s>", *LABELS, *WORDS))}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="<unk>", eos_token="</s>", pad_token="</s>"
    ).save_pretrained(folder)
    return str(folder)


def measure(name: str, folder: Path, size: int) -> str:
    """A line of the table: sub-words before the text and of it, seconds of both ways, their ratio and difference."""
    random = np.random.default_rng(1)
    before, text = (" ".join(random.choice(WORDS, size)) for _ in range(2))
    prompt = folder / "prompt.jinja"
    prompt.write_text(f'{{% if part == "user" %}}{before}\n{{{{ documents[0].text }}}}\n{{% endif %}}', "utf-8")
    model: Any = open_model(name, prompting=Prompting(prompt=prompt))
    align_labels(model, LABELS)
    encoded = model.encode(Instance("one", (), ("d",), (tuple(text.split()),)))
    erased = [full(0), *(without(0, np.array([at])) for at in range(size))]
    seconds, values = dict[bool, list[float]](), dict[bool, np.ndarray]()
    for shares in (True, False) * TURNS:
        model.network.forget()
        with mock.patch.object(PromptedModel, "_reuses_prefixes", shares and model._reuses_prefixes):
            started = time.process_time()
            values[shares] = Runner(model, "remove", 32).run([encoded], erased)
            seconds.setdefault(shares, []).append(time.process_time() - started)
    shared, whole = min(seconds[True]), min(seconds[False])
    start = len(model.tokenizer(before)["input_ids"])
    apart = float(np.abs(values[True] - values[False]).max())
    return f"| {start} | {len(encoded.ids)} | {shared:.2f} | {whole:.2f} | {whole / shared:.2f} | {apart:.0e} |"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--words", type=int, nargs="+", default=[50, 100, 200])
    options = parser.parse_args()
    head = (
        "sub-words before the text",
        "of the text",
        "CPU s with the shared start",
        "without",
        "factor",
        "difference",
    )
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    with tempfile.TemporaryDirectory() as folder:
        name = options.model or make_model(Path(folder) / "model")
        for size in options.words:
            print(measure(name, Path(folder), size), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
