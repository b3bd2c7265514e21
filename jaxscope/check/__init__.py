"""Check a run: no recompiles after a step, limits, a baseline, marks of pytest. ``plan`` combines them."""
