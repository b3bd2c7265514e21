"""Record the tests of a pytest session, and compare what they compile with baselines.

``pytest_plugin`` uses it.
"""
