"""The fixtures of explanations, for the models that are trained to be explained."""

from tests.attribution.conftest import hub, linear, network, planted, tokenizer  # noqa: F401
