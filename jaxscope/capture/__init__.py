"""Everything that runs inside the user's program. It writes facts to a log and draws no conclusions."""
