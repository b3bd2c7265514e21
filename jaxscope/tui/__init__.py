"""The terminal view of a run (the recording of one program), while the program runs or later. The view only
reads the run directory."""
