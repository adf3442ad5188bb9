"""The card of ``hub/eraser``: YAML from release.json, prose from ``datasets_scripts/cards/eraser.md``."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from eraser_hub.conversion.card import card_text, with_configs
from eraser_hub.conversion.features import yaml_features
from eraser_hub.papers import paper

from .configs import CONFIGS, DEFAULT_CONFIG
from .prose import filled_prose
from .schema import SCHEMA

HOMEPAGE = "https://www.eraserbenchmark.com/"


def eraser_card(release: dict[str, Any]) -> str:
    """The text of README.md for the configs of a ``release.json``."""
    facts = {name: CONFIGS[name] for name in CONFIGS if name in release}
    infos = []
    for name, config in facts.items():
        entry = release[name]
        splits = [
            {"name": split, "num_bytes": of["num_bytes"], "num_examples": of["num_examples"]}
            for split, of in entry["splits"].items()
        ]
        infos.append(
            {
                "config_name": name,
                "description": f"ERASER: {config.title}. {config.license_note}",
                "citation": paper("eraser_acl_2020").citation,
                "homepage": HOMEPAGE,
                "license": config.license,
                "version": entry["version"],
                "features": yaml_features(SCHEMA, {"classification": config.label_names}),
                "splits": splits,
                "download_size": entry["download_size"],
                "dataset_size": sum(split["num_bytes"] for split in splits),
            }
        )
    metadata = {
        "pretty_name": "ERASER: Evaluating Rationales And Simple English Reasoning",
        "language": ["en"],
        "license": sorted({config.license for config in facts.values()}),
        "multilinguality": ["monolingual"],
        "task_categories": sorted({config.task for config in facts.values()}),
        "task_ids": sorted({config.task_id for config in facts.values()}),
        "size_categories": [],
        "annotations_creators": ["crowdsourced", "expert-generated"],
        "language_creators": ["found"],
        "source_datasets": sorted({f"extended|{config.source}" for config in facts.values()}),
        "tags": ["explainability", "rationales", "interpretability", "faithfulness", "eraser"],
    }
    card = files("eraser_hub.datasets_scripts").joinpath("cards/eraser.md")
    prose = filled_prose(card.read_text(encoding="utf-8"), release)
    return card_text(with_configs(metadata, infos, DEFAULT_CONFIG, "{config}/{split}-*-of-*.parquet"), prose)
