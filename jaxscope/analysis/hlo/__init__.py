"""Analyze the compiled text of a program (HLO) without XLA: fusions, collectives, loops, memory.

``reader.read`` returns a ``module.Module``, ``program.analyze`` returns the figures that the report shows.
Compiled texts are not trusted: a part that cannot be read becomes a problem with its line.
"""
