"""Readers of annotation tools' exports, one per module; `tasks` says what they have."""
