"""The card of ``hub/eraser``: YAML from release.json, prose from ``datasets_scripts/cards/eraser.md``."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from eraser_hub.conversion.parquet import card_text, size_category
from eraser_hub.papers import paper

from .configs import CONFIGS, DEFAULT_CONFIG
from .prose import filled_prose
from .schema import yaml_features

HOMEPAGE = "https://www.eraserbenchmark.com/"


def eraser_card(release: dict[str, Any]) -> str:
    """The text of README.md for the configs of a ``release.json``."""
    built = [name for name in CONFIGS if name in release["configs"]]
    default = DEFAULT_CONFIG if DEFAULT_CONFIG in built else built[0]
    infos, configs, licenses, tasks, total = [], [], [], [], 0
    for name in built:
        facts, entry = CONFIGS[name], release["configs"][name]
        splits = [
            {"name": split, "num_bytes": of["num_bytes"], "num_examples": of["num_examples"]}
            for split, of in entry["splits"].items()
        ]
        total += sum(split["num_examples"] for split in splits)
        infos.append(
            {
                "config_name": name,
                "description": f"ERASER: {facts.title}. {facts.license_note}",
                "citation": paper("eraser_acl_2020").citation,
                "homepage": HOMEPAGE,
                "license": facts.license,
                "version": entry["version"],
                "features": yaml_features(facts.label_names),
                "splits": splits,
                "download_size": entry["download_size"],
                "dataset_size": sum(split["num_bytes"] for split in splits),
            }
        )
        # here it reaches the builder, and with it the local cache's key; in dataset_info alone it does not
        config: dict[str, Any] = {"config_name": name, "version": entry["version"]}
        if name == default:
            config["default"] = True
        config["data_files"] = [{"split": s, "path": f"{name}/{s}-*-of-*.parquet"} for s in entry["splits"]]
        configs.append(config)
        licenses.append(facts.license)
        tasks.append(facts.task)
    metadata = {
        "pretty_name": "ERASER: Evaluating Rationales And Simple English Reasoning",
        "language": ["en"],
        "license": sorted(set(licenses)),
        "task_categories": sorted(set(tasks)),
        "size_categories": [size_category(total)],
        "annotations_creators": ["crowdsourced", "expert-generated"],
        "tags": ["explainability", "rationales", "interpretability", "faithfulness", "eraser"],
        "configs": configs,
        "dataset_info": infos,
    }
    card = files("eraser_hub.datasets_scripts").joinpath("cards/eraser.md")
    prose = card.read_text(encoding="utf-8")
    return card_text(metadata, filled_prose(prose, release))
