"""Bytes on disk: shared by the recording and the reading side."""
