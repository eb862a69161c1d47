"""Benchmarks: run systems on problem sets, judge what they find, and report it. `symenum bench` drives it."""
