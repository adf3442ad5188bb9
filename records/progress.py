"""A progress bar on stderr where that is a terminal, or none."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any


class Progress:
    """``with Progress("movies: writing", total, "rows", shown) as bar: bar.advance(n)``."""

    def __init__(self, title: str, total: int, unit: str, shown: bool) -> None:
        self._bar: Any = None
        if shown:
            from tqdm import tqdm

            self._bar = tqdm(
                total=total,
                desc=title,
                unit=unit,
                unit_scale=True,
                file=sys.stderr,
                mininterval=0.3,
                leave=False,
                disable=None,
            )

    def advance(self, amount: int) -> None:
        """So much more is done."""
        if self._bar is not None:
            self._bar.update(amount)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()


@contextmanager
def no_cycles() -> Iterator[None]:
    """Without the garbage collector's rounds: records decoded by the ten thousand hold no cycles, and looking for some
    takes a good part of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
