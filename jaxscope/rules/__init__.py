"""A run -> findings: what is worth doing something about, with evidence and a fix that is tested."""
