"""The data of a recording (the files that jaxscope writes while a JAX program runs): the events in its logs.
Also the data that is computed from a recording: causes, findings and messages.

The types are plain data. A few functions on them are defined here, too: who owns a source file, the number of
a training step, the ids of functions. This package imports no other package of jaxscope.
"""
