"""A model and a dataset -> predictions in the ERASER results format."""
