"""Open a model of ``train`` in a folder: a network, or a pipeline whose stages are such folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eraser_hub.attribution.adapter import Adapter
from eraser_hub.attribution.open import Opener, Opening, open_model
from eraser_hub.records.extras import need

from ..system import SYSTEMS


class SystemOpener(Opener):
    """Opener of the papers' networks and of pipelines of them: one stage selects, another one decides."""

    @classmethod
    def opens(cls, opening: Opening) -> bool:
        """Return True if the folder holds a network or a pipeline."""
        return "network" in opening.facts

    @classmethod
    def open(cls, opening: Opening) -> Adapter:
        """Open the network or the pipeline."""
        need("torch", "transformers")
        from ..networks.files import open_network
        from ..pipelines.pipeline import open_pipeline

        if "stages" not in opening.facts:
            return open_network(opening)
        path, names = Path(opening.model), ("window", "device", "precision", "trust_remote_code")
        options: dict[str, Any] = {name: getattr(opening, name) for name in names}
        stages = {str(name): open_model(path / str(name), **options) for name in opening.facts["stages"]}
        return open_pipeline(path, stages, opening.uses_query)

    @classmethod
    def selects(cls, opening: Opening) -> bool:
        """Return True if the model selects its own rationales."""
        network = opening.facts["network"]
        return isinstance(network, str) and network in SYSTEMS and SYSTEMS[network].selects
