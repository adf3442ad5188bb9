"""The ERASER release: raw corpora <-> records <-> rows."""
