"""Timings, each beside a baseline timed in the same run: ``python -m benchmarks NAME``."""
