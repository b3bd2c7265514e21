"""Compute what the screens show as plain data, which needs no terminal library and is easy to test."""
