"""Whole experiments: the rows of a printed table from data to score, beside what is printed (:mod:`reproduce`)."""
