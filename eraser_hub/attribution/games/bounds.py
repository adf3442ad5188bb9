"""Bounds of AOPC that another run has found: they depend on model, texts and units, not on what ranks these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from eraser_hub.attribution.given import Given
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.outputs import differences
from eraser_hub.metrics.fields import AOPC_BOUNDS
from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.predictions import instances
from eraser_hub.records.run_record import read_run, run_path

OPTION = "--aopc-bounds-from"
DECISIVE = ("beam", "erase", "paper", "target", "units")  # settings that decide what the bounds are


class KnownBounds(Given):
    """The bounds of a results file of ``explain --aopc-bounds``, by id.

    Args:
        path: the results file; ``PATH.run.json`` beside it says how it was made.
        header: of the run that takes them (:meth:`run.ExplainPlan.header`).

    Raises:
        DataError: no record beside the file, another model or other data, units or beam; an instance without bounds.
    """

    digest = ""

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.path = path
        before, now = decisive(self._record()), decisive(orjson.loads(orjson.dumps(header)))
        words = differences(before, now)
        if words:
            message = f"{OPTION}: expected bounds of the same inputs: {'; '.join(words)}"
            raise DataError(message, rule="constant", file=path)
        self._bounds: dict[str, tuple[float, float]] = {}
        for line, one in instances(path):
            bounds = getattr(one, AOPC_BOUNDS)
            if bounds is None:
                expected = f"{OPTION}: expected {AOPC_BOUNDS}, found none: a result without --aopc-bounds?"
                raise DataError(expected, rule="score-missing", file=path, line=line, instance=str(one.annotation_id))
            self._bounds[str(one.annotation_id)] = bounds.lower, bounds.upper

    def _record(self) -> dict[str, Any]:
        record = read_run(self.path)
        try:
            return {key: dict(record[key]) for key in ("settings", "data", "model")}
        except (KeyError, TypeError, ValueError) as error:
            words = f"{OPTION}: expected a result of `explain` with its record, found {shown(str(error))}"
            raise DataError(words, rule="key-missing", file=run_path(self.path)) from error

    def put_on(self, instance: Instance) -> Instance:
        """The instance with its bounds.

        Raises:
            DataError: the file has none for it.
        """
        if instance.id not in self._bounds:
            words = f"{OPTION}: expected bounds for each instance"
            raise DataError(words, rule="id-missing", file=self.path, instance=instance.id)
        return replace(instance, aopc_bounds=self._bounds[instance.id])

    def check(self, instances: Iterable[Instance], partly: bool) -> str:
        """See :class:`given.Given`; the data are the same as those of the run that found the bounds."""
        for one in instances:
            self.put_on(one)
        return ""


def decisive(header: Mapping[str, Any]) -> dict[str, Any]:
    """What of a run's header decides the bounds."""
    settings = {name: header["settings"].get(name) for name in DECISIVE}
    return {"settings": settings, "data": header["data"], "model": header["model"]}
