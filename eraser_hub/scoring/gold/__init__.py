"""Gold rationales of several annotators, scores of soft gold, and human performance."""
