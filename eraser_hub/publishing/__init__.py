"""Publish built folders: metric Spaces, uploads to the Hub, a local server, and the viewer's limits."""
