"""One call that left the fast path: its key, its function, its phases."""
