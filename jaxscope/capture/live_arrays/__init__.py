"""The arrays that are alive: by which variables, on which devices, made at which lines."""
