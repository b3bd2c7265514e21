"""Functions that explain the recording of a run (the events that jaxscope wrote while a program ran) and the
texts of compiled programs (StableHLO, HLO). They do not import jax, and write neither to a log nor to the
terminal."""
