"""The systems of the papers, and how they are trained."""
