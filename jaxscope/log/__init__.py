"""Read and write the files of a run directory; used by the side that records and by the side that reads."""
