"""From models to a verdict: one command that trains, explains, scores, compares and reports."""
