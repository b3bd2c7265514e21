"""The compiled text of a program (HLO), read without XLA: fusions, collectives, loops, memory.

``reader.read`` gives a ``module.Module``; ``program.analyse`` all that the report says about it; ``graph`` the
data flow, when somebody asks. No compiled text is trusted: what cannot be read becomes a problem with a line.
"""
