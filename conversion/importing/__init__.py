"""Import of any rationale corpus: a Dataset, Parquet, JSON lines, JSON or CSV -> a corpus folder in ERASER's format."""
