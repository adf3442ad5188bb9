"""The measures of rankings, one a module of its name."""
