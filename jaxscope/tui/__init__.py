"""The terminal view of a run, live or finished: reads the run directory and nothing else."""
