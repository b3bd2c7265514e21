"""Count training steps, and the calls of functions wrapped by ``jaxscope.watch``."""
