"""Errors, splits, JSON lines, prediction files, built datasets and atomic folders, for all layers above."""
