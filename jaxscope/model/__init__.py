"""What happened, queryable: the events of a run folded into functions, compilations and programs."""
