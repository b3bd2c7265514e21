"""Take snapshots of the arrays that are alive: which variables lead to them, on which devices they are, and
which lines created them."""
