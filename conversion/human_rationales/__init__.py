"""Human-rationale corpora (SST, WikiAttack): their files <-> rows."""

from __future__ import annotations

from eraser_hub.conversion.dataset import SPAN_HEADLINES, HubDataset

DATASET = HubDataset("human_rationales", ("sst", "wikiattack"), "sst", SPAN_HEADLINES)
