"""The data types of a recording, which is a run of a JAX program that jaxscope has written to files.

The types are plain data without behavior. This package imports no other package of jaxscope.
"""
