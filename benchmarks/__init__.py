"""Side-by-side measurements: `make bench`, or `python -m benchmarks NAME` for one. Ratios, not seconds: machines differ."""
