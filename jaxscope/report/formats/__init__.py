"""Findings for the programs around: editors, CI, dashboards.

Each format is a function from findings to text.
"""
