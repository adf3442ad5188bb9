"""The formats that an import reads, one a module."""
