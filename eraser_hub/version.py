"""The one place that says which version this is."""

__version__ = "3.0.0"
