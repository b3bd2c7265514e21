"""Describe one call of a jitted function that missed JAX's fast path (the C++ cache, which runs no Python):
the call's cache key, function and phases."""
