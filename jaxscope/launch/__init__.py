"""Start a Python program so that it is recorded, and wait for its end: ``jaxscope run``, ``jaxscope launch``.

The package ``capture`` does the recording, inside the process of the program.
"""
