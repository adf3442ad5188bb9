"""Groups, verification and submissions of the results board."""
