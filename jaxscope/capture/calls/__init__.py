"""Describe one call of a jitted function that left JAX's fast path: its cache key, its function, its
phases."""
