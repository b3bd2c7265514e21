"""Reads what JAX lowered a function to: StableHLO text, without jax and without MLIR."""
