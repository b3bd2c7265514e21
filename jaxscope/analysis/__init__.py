"""Pure functions that explain what jaxscope recorded about a run and what compiled programs (StableHLO, HLO)
contain. They import no jax and write neither to a log nor to the terminal."""
