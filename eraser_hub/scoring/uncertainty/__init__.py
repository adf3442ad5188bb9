"""One model of uncertainty: variance components of scores, tests, verdicts and power."""
