"""Results of other attribution libraries, as a score for each token."""
