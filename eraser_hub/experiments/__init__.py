"""Experiments: the rows of a printed table from data to score, beside the printed figures (:mod:`reproduce`)."""
