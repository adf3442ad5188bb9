"""Openers of the papers' systems, one kind per module."""
