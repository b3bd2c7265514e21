"""Take snapshots of the arrays that are alive: the variables that lead to them, their devices, the lines that
created them."""
