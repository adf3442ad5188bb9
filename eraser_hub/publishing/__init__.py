"""Publish built folders: metric Spaces and uploads to the Hub."""
