"""Bytes on disk: the one place where the writing and the reading wing meet."""
