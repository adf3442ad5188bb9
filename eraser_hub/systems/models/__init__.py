"""The systems, one in each module."""
