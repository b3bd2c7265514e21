"""Keep figures of compiled programs in a baseline, a small file in the user's repository, and compare later
runs with them."""
