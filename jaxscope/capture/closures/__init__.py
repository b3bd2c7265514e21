"""Find the values that a traced function reads from outside its arguments, and check whether they have
changed since the trace."""
