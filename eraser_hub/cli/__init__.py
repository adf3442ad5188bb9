"""The verbs of the command line, a module each: they parse, call, and print; the work lies in the other packages.

A command module imports nothing heavy at its top (``eraser-hub --help`` must answer at once): what it calls is
imported inside the function.
"""
