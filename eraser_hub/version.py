"""The one place that says which version this is."""

__version__ = "2.0.0"
