"""Highlighted rationales, curves, and the results board."""
