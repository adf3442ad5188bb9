"""Side-by-side measurements, `make bench` or `python -m benchmarks NAME`. Ratios, not seconds: machines differ."""
