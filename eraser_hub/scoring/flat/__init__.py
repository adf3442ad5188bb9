"""Flat files of rationales, scored without a dataset."""
