"""Find the values that a traced function reads and that are not its arguments, and check whether these values
have changed since the trace."""
