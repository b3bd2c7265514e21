"""Start a program under observation, and stay with it to its end; ``capture`` records."""
