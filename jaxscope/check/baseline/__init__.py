"""Keep figures of compiled programs in a small file of the user's repository, and compare later runs with
them.
"""
