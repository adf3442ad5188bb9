"""A network of ``train`` in one folder."""

from __future__ import annotations

from pathlib import Path

from eraser_hub.attribution.adapter import Adapter
from eraser_hub.attribution.open import Opener, Opening
from eraser_hub.records.extras import need

from ..networks.systems import SYSTEMS


class NetworkOpener(Opener):
    """One of the papers' networks."""

    @classmethod
    def opens(cls, opening: Opening) -> bool:
        return "network" in opening.facts and "stages" not in opening.facts

    @classmethod
    def open(cls, opening: Opening) -> Adapter:
        need("torch", "transformers")
        from ..networks.files import open_network

        return open_network(
            Path(opening.model),
            uses_query=opening.uses_query,
            window=opening.window,
            device=opening.device,
            precision=opening.precision,
            trust_remote_code=opening.trust_remote_code,
        )

    @classmethod
    def selects(cls, opening: Opening) -> bool:
        network = opening.facts["network"]
        return isinstance(network, str) and network in SYSTEMS and bool(SYSTEMS[network].selects)
