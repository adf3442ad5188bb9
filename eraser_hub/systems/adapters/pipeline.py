"""A pipeline of ``train``, each of whose stages is a model's folder."""

from __future__ import annotations

from pathlib import Path

from eraser_hub.attribution.adapter import Adapter
from eraser_hub.attribution.open import Opener, Opening, open_model
from eraser_hub.records.extras import need

from ..networks.systems import SYSTEMS


class PipelineSystemOpener(Opener):
    """One of the papers' pipelines: a stage selects, another decides."""

    @classmethod
    def opens(cls, opening: Opening) -> bool:
        return "network" in opening.facts and "stages" in opening.facts

    @classmethod
    def open(cls, opening: Opening) -> Adapter:
        need("torch", "transformers")
        from ..pipelines.files import pipeline_of

        path = Path(opening.model)
        stages = {
            str(name): open_model(
                path / str(name),
                window=opening.window,
                device=opening.device,
                precision=opening.precision,
                trust_remote_code=opening.trust_remote_code,
            )
            for name in opening.facts["stages"]
        }
        return pipeline_of(path, stages, uses_query=opening.uses_query)

    @classmethod
    def selects(cls, opening: Opening) -> bool:
        network = opening.facts["network"]
        return isinstance(network, str) and network in SYSTEMS and bool(SYSTEMS[network].selects)
