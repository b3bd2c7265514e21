"""Count steps, and the calls of watched functions."""
