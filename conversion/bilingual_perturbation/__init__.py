"""The bilingual perturbation benchmark: its files <-> rows."""
