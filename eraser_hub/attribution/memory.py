"""Memory that runs out: told from other errors, and worked around in halves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

from eraser_hub.records.errors import DataError

from .adapter import Notes

Item = TypeVar("Item")
Result = TypeVar("Result")
OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "alloc_failed",
    "could not create a memory object",
)


def in_halves(
    work: Callable[[list[Item]], list[Result]], items: Sequence[Item], notes: Notes, all_of: bool = True
) -> list[Result]:
    """``work(items)``, in halves as often as memory runs out; says so in ``notes``.

    Args:
        all_of: the halves' results one after the other; False: the first half's alone, for work whose result does not
            depend on how many items go together.

    Raises:
        DataError: out of memory with a single item.
    """
    try:
        return work(list(items))
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        if len(items) == 1:
            words = "out of memory with a single input; a shorter `window` needs less"
            raise DataError(words, rule="device") from error
    half = len(items) // 2
    notes.say(f"out of memory with {len(items)} inputs at a time: halved to {half}")
    release_memory()
    results = in_halves(work, items[:half], notes, all_of)
    return [*results, *in_halves(work, items[half:], notes)] if all_of else results


def out_of_memory(error: BaseException) -> bool:
    """True for Python's MemoryError and for torch's out-of-memory errors on any device.

    torch.cuda.OutOfMemoryError, the processor's allocator, cuBLAS and oneDNN each have their own words.
    """
    words = str(error).lower()
    return isinstance(error, MemoryError) or any(phrase in words for phrase in OUT_OF_MEMORY)


def release_memory() -> None:
    """Give cached device memory back after an out-of-memory error."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
