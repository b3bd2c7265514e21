"""Analyze the StableHLO text to which JAX lowered a function, without jax and without MLIR.
``reading.analyze`` is the function to call."""
