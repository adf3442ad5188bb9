"""What everybody reads and writes: errors, splits, JSON lines, prediction files, built datasets, atomic folders."""
