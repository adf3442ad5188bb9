"""Download of releases over HTTP: resumable, verified, and unpacked safely."""
