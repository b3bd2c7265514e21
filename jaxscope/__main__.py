"""Run the command line of jaxscope: ``python -m jaxscope`` is the command ``jaxscope``."""

from jaxscope.cli import main

main()
