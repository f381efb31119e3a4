"""Benchmarks: they print a ratio to their target, and check their decisions before they give a number."""
