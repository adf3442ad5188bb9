"""Would another runtime than PyTorch make `explain` faster on a processor? One MiniLM classifier, one thread.

python -m benchmarks.runtimes       torch.compile where there is a C++ compiler, ONNX Runtime where onnx, onnxscript and
                                    onnxruntime are installed

Per shape of a batch the processor's time of PyTorch as it is, and the others' as multiples of it (above 1: faster), in
turn, medians; their greatest difference in p; and what making them takes. Batches that `explain` runs have many shapes,
so that both are made for any (dynamic) shape.
"""

from __future__ import annotations

import importlib.util
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.explain import network_and_tokenizer

SHAPES = ((32, 16), (16, 32), (16, 128), (4, 512))  # (inputs, sub-words)
RUNS = 7
Run = Callable[[Any], np.ndarray]


class Logits(torch.nn.Module):
    """A classifier as a function of two tensors."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.network(input_ids=input_ids, attention_mask=attention_mask).logits  # type: ignore[no-any-return]


def by_torch(module: Callable[..., torch.Tensor]) -> Run:
    """PyTorch, compiled or not."""

    def run(batch: tuple[torch.Tensor, torch.Tensor]) -> np.ndarray:
        with torch.inference_mode():
            return np.asarray(torch.softmax(module(*batch), dim=-1).numpy())

    return run


def by_onnx(module: torch.nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> Run:
    """ONNX Runtime, of the network exported with any number of inputs and sub-words."""
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        axes = {0: torch.export.Dim("inputs", min=2, max=64), 1: torch.export.Dim("pieces", min=2, max=512)}
        names = {"input_names": ["input_ids", "attention_mask"], "output_names": ["logits"]}
        torch.onnx.export(module, batch, path, dynamo=True, dynamic_shapes=(axes, axes), verbose=False, **names)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def run(batch: tuple[torch.Tensor, torch.Tensor]) -> np.ndarray:
        names = ("input_ids", "attention_mask")
        (logits,) = session.run(None, {name: part.numpy() for name, part in zip(names, batch, strict=True)})
        return np.asarray(torch.softmax(torch.from_numpy(logits), dim=-1).numpy())

    return run


def batch_of(inputs: int, pieces: int, words: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random sub-words, a quarter of the rows' last quarter padded."""
    generator = torch.Generator().manual_seed(inputs * pieces)
    ids = torch.randint(1000, words, (inputs, pieces), generator=generator)
    mask = torch.ones_like(ids)
    mask[: inputs // 4, -(pieces // 4) :] = 0
    return ids * mask, mask


def seconds(run: Run, batch: Any) -> float:
    """The processor's time of a batch."""
    start = time.process_time()
    run(batch)
    return time.process_time() - start


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    network, _ = network_and_tokenizer("MiniLM")
    module, words = Logits(network.eval()), network.config.vocab_size
    batches = [batch_of(*shape, words) for shape in SHAPES]
    runs: dict[str, Run] = {"PyTorch": by_torch(module)}
    if shutil.which("g++") or shutil.which("clang++"):
        runs["torch.compile"] = by_torch(torch.compile(module, dynamic=True))
    if all(map(importlib.util.find_spec, ("onnx", "onnxscript", "onnxruntime"))):
        start = time.process_time()
        runs["ONNX Runtime"] = by_onnx(module, batches[1])
        print(f"ONNX Runtime: {time.process_time() - start:.0f} s to export")
    print("| inputs x sub-words | PyTorch, ms |" + "".join(f" {name} | difference in p |" for name in list(runs)[1:]))
    print("|---|---|" + "---|---|" * (len(runs) - 1))
    for shape, batch in zip(SHAPES, batches, strict=True):
        expected = runs["PyTorch"](batch)
        differences = {name: np.abs(run(batch) - expected).max() for name, run in runs.items()}  # compiles, too
        taken = [[seconds(run, batch) for run in runs.values()] for _ in range(RUNS)]
        times = {name: statistics.median(column) for name, column in zip(runs, zip(*taken, strict=True), strict=True)}
        cells = "".join(f" {times['PyTorch'] / times[name]:.2f} | {differences[name]:.0e} |" for name in list(runs)[1:])
        print(f"| {shape[0]} x {shape[1]} | {times['PyTorch'] * 1e3:.0f} |{cells}", flush=True)


if __name__ == "__main__":
    main()
