"""A report's section on the reasoning of language models."""
