"""The values that a traced function reads without being passed them, and whether they have changed since."""
