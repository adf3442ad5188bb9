"""The command line in the process of a test."""

from __future__ import annotations

import io
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

from eraser_hub.cli import main


@dataclass
class Result:
    """What a command printed, and how it ended; ``exception`` is the error behind a message, or one without any."""

    exit_code: int
    stdout: str
    stderr: str
    exception: BaseException | None = None

    @property
    def output(self) -> str:
        """All that was printed."""
        return self.stdout + self.stderr


def invoke(arguments: Iterable[object]) -> Result:
    """Run ``eraser-hub`` with these arguments."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    status = 0
    exception: BaseException | None = None
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as ended:
            status, exception = ended.code if isinstance(ended.code, int) else 1, ended.__cause__
        except Exception as error:
            status, exception = 1, error
    printed = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return Result(status, printed[0], printed[1], exception)
