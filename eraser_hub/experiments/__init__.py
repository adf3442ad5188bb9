"""Experiments over the public functions: a printed table run again (`reproduce`), and models to a verdict (`bench`)."""
