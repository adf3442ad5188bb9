"""The one place that says which version this is."""

__version__ = "1.0.0"
