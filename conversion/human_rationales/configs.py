"""The configurations of ``human_rationales``."""

CONFIGS = ("sst", "wikiattack")
DEFAULT_CONFIG = "sst"
