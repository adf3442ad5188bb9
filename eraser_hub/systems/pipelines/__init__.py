"""Pipelines: a selector cuts an extract out of the text, and a classifier reads only the extract."""
