"""Describe one call of a jitted function that missed JAX's fast path (the C++ cache, which runs no Python):
its cache key, its function, and its phases (trace, lowering, compilation)."""
