"""Networks of ``transformers`` as models."""
