"""Pure functions from facts and texts to meaning: no jax, no log, no terminal."""
