"""The kinds of models that are opened, one a module: each tells whether a model is of its kind, and opens it."""
