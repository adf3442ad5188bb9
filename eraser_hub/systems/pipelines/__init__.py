"""Pipelines: a selector cuts an extract out of the text, a classifier reads the extract and nothing else."""
