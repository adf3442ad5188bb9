"""Progress on stderr: instances, and instances and forward passes per second."""

from __future__ import annotations

import time
from types import TracebackType

from tqdm import tqdm


class Progress:
    """A bar that counts instances and says how fast they and the forward passes go.

    Args:
        total: number of instances, None where it is not known.
        quiet: show nothing.
    """

    def __init__(self, total: int | None, quiet: bool = False) -> None:
        self._bar = tqdm(total=total, unit=" instances", disable=quiet, mininterval=0.5, smoothing=0, leave=True)
        self._passes, self._started, self._shown = 0, 0.0, 0.0

    def add(self, instances: int, passes: int) -> None:
        """Count finished instances and forward passes."""
        now = time.perf_counter()
        # opening the model is not counted: the clock starts with the first result
        self._started = self._started or now
        self._passes += passes
        if now - self._shown > 0.5 and now - self._started > 0.1:
            self._shown = now
            self._bar.set_postfix_str(f"{self._passes / max(now - self._started, 1e-9):.0f} passes/s", refresh=False)
        self._bar.update(instances)

    def close(self) -> None:
        """End the bar's line."""
        self._bar.close()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
