"""Benchmarks: what this machine does with Tocsin, each figure beside its floor."""
