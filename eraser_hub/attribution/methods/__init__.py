"""The attribution methods, one a module of its name."""
