"""A model of ``train`` in a folder: a network, or a pipeline, each of whose stages is such a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eraser_hub.attribution.adapter import Adapter
from eraser_hub.attribution.open import Opener, Opening, open_model
from eraser_hub.records.extras import need

from ..system import SYSTEMS


class SystemOpener(Opener):
    """One of the papers' networks, or a pipeline of them: a stage selects, another decides."""

    @classmethod
    def opens(cls, opening: Opening) -> bool:
        return "network" in opening.facts

    @classmethod
    def open(cls, opening: Opening) -> Adapter:
        need("torch", "transformers")
        from ..networks.files import open_network
        from ..pipelines.pipeline import open_pipeline

        if "stages" not in opening.facts:
            return open_network(opening)
        path, names = Path(opening.model), ("window", "device", "precision", "trust_remote_code")
        how: dict[str, Any] = {name: getattr(opening, name) for name in names}
        stages = {str(name): open_model(path / str(name), **how) for name in opening.facts["stages"]}
        return open_pipeline(path, stages, opening.uses_query)

    @classmethod
    def selects(cls, opening: Opening) -> bool:
        network = opening.facts["network"]
        return isinstance(network, str) and network in SYSTEMS and SYSTEMS[network].selects
