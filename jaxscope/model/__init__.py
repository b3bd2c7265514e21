"""Fold the events of a run into functions, compilations and programs, to be queried."""
