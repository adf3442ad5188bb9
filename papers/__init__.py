"""What the papers print: their tables, results and constants, a file a paper."""
