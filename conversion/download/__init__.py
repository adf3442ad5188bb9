"""Releases over HTTP: resumed, verified, unpacked without trust."""
