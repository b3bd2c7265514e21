"""Copies between the host and devices, counted by line."""
