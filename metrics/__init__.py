"""The six ``evaluate`` modules, and beside them the leaves (pure numpy) that they import."""
