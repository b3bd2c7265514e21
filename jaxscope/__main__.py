"""``python -m jaxscope``."""

from jaxscope.cli import main

main()
