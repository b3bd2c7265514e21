"""Turn data into text: the templates of all messages, and functions that write sizes, causes, findings and so
on.

Some texts have styles (``present.spans``); none has colors or a layout. A function escapes names from the
user's program only if its docstring says so.
"""
