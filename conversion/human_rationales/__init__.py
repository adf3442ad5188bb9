"""Human-rationale corpora (SST, WikiAttack): their files <-> rows."""

from __future__ import annotations

from eraser_hub.conversion.dataset import HEADLINES_OF_SPANS, HubDataset

DATASET = HubDataset("human_rationales", ("sst", "wikiattack"), "sst", HEADLINES_OF_SPANS)
