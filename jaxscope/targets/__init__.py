"""The compiler of an absent machine, in a process of its own."""
