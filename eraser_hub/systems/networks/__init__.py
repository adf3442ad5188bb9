"""The papers' own networks: what they are (:mod:`systems`), how they read texts, and as models of ``explain``."""
