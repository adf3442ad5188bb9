"""What other libraries' attribution methods give, as a score for each token."""
