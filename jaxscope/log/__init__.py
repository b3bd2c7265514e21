"""Read and write the files of a run directory (one recording). Both the recorded program and the commands
that show a recording use this package."""
