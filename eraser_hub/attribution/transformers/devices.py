"""Device and precision of a network: chosen automatically, or an error that names what is missing."""

from __future__ import annotations

from typing import Any, get_args

from eraser_hub.attribution.adapter import is_out_of_memory
from eraser_hub.attribution.config import Precision
from eraser_hub.records.errors import DataError, get_first_line, show

PRECISIONS = get_args(Precision)


def find_device(name: str | None) -> Any:
    """Return the torch device of this name; by default cuda if there is one, else the processor.

    Raises:
        DataError: no such device, or not on this machine.
    """
    import torch

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
    import torch

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
    import torch

    if precision not in PRECISIONS:
        message = f"expected one of {', '.join(PRECISIONS)}; found {show(precision)}"
        raise DataError(message, argument="precision")
    if precision == "auto":
        return torch.bfloat16 if supports_bf16(device) else None
    return {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(precision)


def describe_half(half: Any, device: Any) -> str:
    """Describe a run's half precision."""
    return f"forward passes in {str(half).removeprefix('torch.')} on {device}; `precision` float32 for more digits"


def to_float32(values: Any) -> Any:
    """Convert a tensor to float32; float64 stays."""
    import torch

    return values if values.dtype == torch.float64 else values.float()


def to_float64(values: Any) -> Any:
    """Convert a tensor to float64; on the processor where the device (mps) has no such numbers."""
    return (values.cpu() if values.device.type == "mps" else values).double()


def find_network_device(name: str | None, network: Any) -> Any:
    """Return the device of a network's inputs: that of `find_device`, or where ``device_map`` put its embeddings.

    Raises:
        DataError: as of `find_device`.
    """
    if getattr(network, "hf_device_map", None):
        return network.get_input_embeddings().weight.device
    return find_device(name)


def move_network(network: Any, device: Any, keeps_type: bool = False) -> Any:
    """Move the network to the device, for evaluation, its weights in float32.

    A checkpoint may hold half-precision weights, which ``transformers`` keeps: gradients and the differences of
    probabilities that faithfulness is made of need float32; where half precision is wanted autocast makes it. With
    ``keeps_type`` weights stay as they are. A network that ``device_map`` placed stays where it is.

    Raises:
        DataError: it does not fit into the device's memory.
    """
    import torch

    try:
        if getattr(getattr(network, "lm", network), "hf_device_map", None):
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
    encoder = getattr(network, "base_model", network)
    if encoder is network:
        return
    for part in network.children():
        if part is not encoder:
            _run_outside_autocast(part, kind)


def _run_outside_autocast(part: Any, kind: str) -> None:
    import torch

    inner = part.forward

    def widened(value: Any) -> Any:
        return to_float32(value) if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    def forward(*values: Any, **named: Any) -> Any:
        with torch.autocast(kind, enabled=False):
            return inner(*map(widened, values), **{name: widened(value) for name, value in named.items()})

    part.forward = forward
