"""Any rationale corpus in: a Dataset, Parquet, JSON lines, JSON or CSV -> a corpus folder in ERASER's format."""
