"""Keep the figures of compiled programs in a small file of the repository, and compare later runs with it."""
