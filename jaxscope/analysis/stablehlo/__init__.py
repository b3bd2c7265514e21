"""Analyze the StableHLO text to which JAX lowered a function, without jax and without MLIR.
``reading.analyse`` is the function to call."""
