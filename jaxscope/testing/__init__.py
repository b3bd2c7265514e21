"""Record the tests of a pytest session, and compare what they compile with baselines.

The pytest plugin uses this package.
"""
