"""The card of ``hub/eraser``: YAML from release.json, prose from ``datasets_scripts/cards/eraser.md``, or from
``own_corpora.md`` where there are corpora of one's own alone."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from eraser_hub.conversion.card import card_text, with_configs
from eraser_hub.conversion.features import yaml_features
from eraser_hub.papers import paper

from .configs import CONFIGS, DEFAULT_CONFIG, EraserConfig
from .prose import filled_prose
from .schema import SCHEMA

HOMEPAGE = "https://www.eraserbenchmark.com/"
TITLE = "ERASER: Evaluating Rationales And Simple English Reasoning"
TITLE_OF_OWN = "A corpus in ERASER's format"


def eraser_card(release: dict[str, Any], facts: Mapping[str, EraserConfig]) -> str:
    """The text of README.md for the configs of a ``release.json``, of which these are the ``facts``."""
    infos = [_info(config, release[name]) for name, config in facts.items()]
    prose = filled_prose(_prose(facts), release, facts)
    return card_text(with_configs(_metadata(facts), infos, DEFAULT_CONFIG, "{config}/{split}-*-of-*.parquet"), prose)


def _info(config: EraserConfig, entry: dict[str, Any]) -> dict[str, Any]:
    """A config's entry of ``dataset_info``."""
    splits = [
        {"name": split, "num_bytes": of["num_bytes"], "num_examples": of["num_examples"]}
        for split, of in entry["splits"].items()
    ]
    released = config.name in CONFIGS
    return {
        "config_name": config.name,
        "description": f"{'ERASER' if released else TITLE_OF_OWN}: {config.title}. {config.license_note}",
        "citation": paper("eraser_acl_2020").citation if released else config.citation,
        **({"homepage": HOMEPAGE} if released else {}),
        "license": config.license,
        "version": entry["version"],
        "features": yaml_features(SCHEMA, {"classification": config.label_names}),
        "splits": splits,
        "download_size": entry["download_size"],
        "dataset_size": sum(split["num_bytes"] for split in splits),
    }


def _metadata(facts: Mapping[str, EraserConfig]) -> dict[str, Any]:
    """What the card says of the whole dataset; what nobody said of a corpus of one's own is left out."""
    released = [config for name, config in facts.items() if name in CONFIGS]
    languages = sorted({code for config in facts.values() for code in config.language})
    sources = {f"extended|{config.source}" for config in released}
    creators = {"annotations_creators": ["crowdsourced", "expert-generated"], "language_creators": ["found"]}
    return {
        "pretty_name": TITLE if released else ", ".join(facts),
        **({"language": languages} if languages else {}),
        "license": sorted({config.license for config in facts.values()}),
        **({"multilinguality": ["monolingual" if len(languages) == 1 else "multilingual"]} if languages else {}),
        "task_categories": sorted({config.task for config in facts.values()}),
        "task_ids": sorted({config.task_id for config in facts.values()}),
        "size_categories": [],
        **(creators if released else {}),
        "source_datasets": sorted(sources | ({"original"} if len(released) < len(facts) else set())),
        "tags": ["explainability", "rationales", "interpretability", "faithfulness", "eraser"],
    }


def _prose(facts: Mapping[str, EraserConfig]) -> str:
    """The card's words, with marks to be filled in. Corpora of one's own alone have a card of their own, but for the columns."""
    cards = files("eraser_hub.datasets_scripts").joinpath("cards")
    eraser = cards.joinpath("eraser.md").read_text(encoding="utf-8")
    if not CONFIGS.keys().isdisjoint(facts):
        return eraser
    columns = eraser[eraser.index("## Columns") : eraser.index("## Statistics")].strip()
    own = cards.joinpath("own_corpora.md").read_text(encoding="utf-8")
    return own.replace("<!-- columns -->", columns).replace('"CONFIG"', f'"{next(iter(facts))}"')
