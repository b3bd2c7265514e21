"""Describe one call of a jitted function that missed JAX's fast path: its cache key, its function, its
phases."""
