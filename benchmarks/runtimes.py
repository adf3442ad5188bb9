"""A MiniLM's forward passes by PyTorch as `explain` runs them, by torch.compile and by ONNX Runtime: is either twice as fast?

python -m benchmarks.runtimes       one thread; ONNX Runtime and its exporter where onnx, onnxscript and onnxruntime are installed
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from benchmarks.explain import network_and_tokenizer
from benchmarks.peers import Model

RUNS = 5
SHAPES = ((16, 32), (8, 128), (2, 512))  # inputs, and sub-words of each
Forward = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def by_torch(model: Model) -> Forward:
    """The network as it is."""
    return lambda ids, visible: model.network(input_ids=ids, attention_mask=visible).logits


def by_compile(model: Model) -> Forward:
    """torch.compile, a shape at a time."""
    torch._dynamo.config.cache_size_limit = 64  # a program for each shape
    network = torch.compile(model.network)
    return lambda ids, visible: network(input_ids=ids, attention_mask=visible).logits


def by_onnx(model: Model) -> Forward:
    """ONNX Runtime, with all of its graph optimisations."""
    import onnxruntime

    class Logits(torch.nn.Module):
        """The network with one output."""

        def __init__(self) -> None:
            super().__init__()
            self.network = model.network

        def forward(self, ids: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
            return self.network(input_ids=ids, attention_mask=visible).logits

    axes = {0: torch.export.Dim("inputs", min=1, max=64), 1: torch.export.Dim("places", min=2, max=512)}
    ids = torch.ones((2, 16), dtype=torch.int64)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        torch.onnx.export(
            Logits().eval(), (ids, ids), path, input_names=["ids", "visible"], dynamic_shapes=(axes, axes), dynamo=True,
            verbose=False,
        )  # fmt: skip
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def forward(ids: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
        (logits,) = session.run(None, {"ids": ids.numpy(), "visible": visible.numpy()})
        return torch.from_numpy(logits)

    return forward


RUNTIMES = {"PyTorch": by_torch, "torch.compile": by_compile, "ONNX Runtime": by_onnx}


def seconds(forward: Forward, ids: torch.Tensor) -> float:
    """CPU seconds of a pass."""
    start = time.process_time()
    forward(ids, torch.ones_like(ids))
    return time.process_time() - start


def main() -> None:
    """Print the table: seconds by PyTorch, and how many times faster the others are; all must agree."""
    torch.set_num_threads(1)
    model = Model(*network_and_tokenizer("MiniLM"))
    sides = dict[str, Forward]()
    with torch.inference_mode():
        for name, make in RUNTIMES.items():
            try:
                sides[name] = make(model)
            except ImportError as error:
                print(f"{name}: not here ({error})")
        print(f"| inputs x sub-words | {' | '.join(sides)} |", "|---|" + "---|" * len(sides), sep="\n")
        for shape in SHAPES:
            ids = torch.from_numpy(np.random.default_rng(3).integers(1000, 20_000, shape))
            first = sides["PyTorch"](ids, torch.ones_like(ids))
            for name, forward in sides.items():  # compiles, too
                torch.testing.assert_close(forward(ids, torch.ones_like(ids)), first, rtol=1e-3, atol=1e-4, msg=name)
            times = {name: list[float]() for name in sides}
            for _ in range(RUNS):
                for name, forward in sides.items():
                    times[name].append(seconds(forward, ids))
            medians = {name: statistics.median(several) for name, several in times.items()}
            cells = [f"{medians['PyTorch']:.3f} s", *(f"{medians['PyTorch'] / medians[n]:.2f}" for n in [*sides][1:])]
            print(f"| {shape[0]} x {shape[1]} | {' | '.join(cells)} |", flush=True)
    print(f"load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
