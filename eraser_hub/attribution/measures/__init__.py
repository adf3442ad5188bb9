"""The measures of rankings and rationales, one a module of its name."""
