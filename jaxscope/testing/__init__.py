"""Record the tests of a pytest session, and compare what the tests compile with baselines (saved figures of
earlier runs).

jaxscope's pytest plugin uses this package.
"""
