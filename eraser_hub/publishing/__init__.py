"""Built folders -> the Hub: metric Spaces, publishing, serving, the viewer's limits."""
