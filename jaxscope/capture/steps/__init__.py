"""Steps, and the calls of watched functions."""
