"""What `jaxscope check` compares a run with: the gate on recompiles, limits, baselines, marks of pytest."""
