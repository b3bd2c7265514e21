"""Write findings for other programs: editors, CI, dashboards.

Each module writes one format: a function ``render`` takes findings and returns text.
"""
