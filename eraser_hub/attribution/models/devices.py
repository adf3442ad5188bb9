"""Where a network runs, and in which precision: chosen by itself, or an error that names what is missing."""

from __future__ import annotations

from typing import Any

import torch

from eraser_hub.records.errors import DataError, describe_choice, get_first_line, show

from .inputs import is_out_of_memory


def find_device(name: str | None, network: Any = None) -> Any:
    """Return the torch device of this name; by default cuda if there is one, else the processor.

    Args:
        name: the device; None to choose.
        network: a network whose layers ``device_map`` has placed takes its inputs where its embeddings are.

    Raises:
        DataError: no such device, or not on this machine.
    """
    if getattr(network, "hf_device_map", None):
        return network.get_input_embeddings().weight.device
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).cpu()
    except Exception as error:  # torch raises errors of many types, by device
        message = f"expected a device of this machine, found {show(name)}: {get_first_line(error)}"
        raise DataError(message, argument="device") from error
    return device


def supports_bf16(device: Any) -> bool:
    """Return True if the device computes in bf16; older GPUs only imitate it, slower than float32."""
    if device.type != "cuda":
        return False
    with torch.cuda.device(device):
        try:
            return bool(torch.cuda.is_bf16_supported(including_emulation=False))
        except TypeError:  # torch before 2.6 knows no imitation
            return bool(torch.cuda.is_bf16_supported())


def half_type(precision: str, device: Any) -> Any:
    """Return the torch type of forward passes in half precision (autocast); None for float32.

    ``auto`` takes bfloat16 where :func:`supports_bf16`.

    Raises:
        DataError: an unknown precision.
    """
    types = {"auto": None, "float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if precision not in types:
        raise DataError(describe_choice(precision, types), argument="precision")
    return torch.bfloat16 if precision == "auto" and supports_bf16(device) else types[precision]


def describe_half(half: Any, device: Any) -> str:
    """Describe a run's half precision."""
    return f"forward passes in {str(half).removeprefix('torch.')} on {device}; `precision` float32 for more digits"


def to_float32(values: Any) -> Any:
    """Convert a tensor to float32; float64 stays."""
    return values if values.dtype == torch.float64 else values.float()


def to_float64(values: Any) -> Any:
    """Convert a tensor to float64; on the processor where the device (mps) has no such numbers."""
    return (values.cpu() if values.device.type == "mps" else values).double()


def move_network(network: Any, device: Any, keeps_type: bool = False) -> Any:
    """Move the network to the device, for evaluation, its weights in float32.

    A checkpoint may hold half-precision weights, which ``transformers`` keeps: gradients and the differences of
    probabilities that faithfulness is made of need float32; where half precision is wanted autocast makes it. With
    ``keeps_type`` weights stay as they are. A network that ``device_map`` placed stays where it is.

    Raises:
        DataError: it does not fit into the device's memory.
    """
    try:
        if getattr(network, "hf_device_map", None):
            return network.eval()
        if not keeps_type and any(weights.dtype in (torch.float16, torch.bfloat16) for weights in network.parameters()):
            network = network.float()
        return network.to(device).eval()
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        raise DataError(f"`device` {device}: out of memory while the model was moved there") from error


def keep_heads_in_float32(network: Any, kind: str) -> None:
    """Let everything behind the encoder (the classification head) compute in float32 under autocast.

    bf16 has eight binary digits: logits near 4 would be multiples of 1/64, and most occlusion scores ties; float16 has
    eleven.
    """

    def widen(value: Any) -> Any:
        return to_float32(value) if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    def keep(part: Any) -> None:
        inner = part.forward

        def forward(*values: Any, **named: Any) -> Any:
            with torch.autocast(kind, enabled=False):
                return inner(*map(widen, values), **{name: widen(value) for name, value in named.items()})

        part.forward = forward

    encoder = getattr(network, "base_model", network)
    for part in network.children() if encoder is not network else ():
        if part is not encoder:
            keep(part)
