"""The systems of the papers and their training."""
