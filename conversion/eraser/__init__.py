"""The ERASER corpora: their files <-> annotations and documents <-> rows."""
