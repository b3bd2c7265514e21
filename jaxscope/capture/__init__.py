"""The code that runs inside the user's program while it is recorded. It writes facts to a log; conclusions
are drawn later, by the code that reads the log."""
