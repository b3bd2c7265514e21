"""The compiled text of a program (HLO), read without XLA: fusions, collectives, loops, memory."""
