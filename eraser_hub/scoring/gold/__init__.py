"""Gold rationales of several annotators, and human performance."""
