"""Compile programs for targets, which are accelerators that this machine need not have. The compilers run in
separate processes."""
