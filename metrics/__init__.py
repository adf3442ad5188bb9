"""Metrics of rationales: one module a Space, and the leaves that they share."""
