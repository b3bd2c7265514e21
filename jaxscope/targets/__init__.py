"""Compile programs for accelerators that this machine does not have, in separate processes."""
