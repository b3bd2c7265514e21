"""Turn the events of a recorded run into functions, compilations and programs that can be queried."""
