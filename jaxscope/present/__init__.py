"""Turn data into text: the templates of all messages, and functions that write sizes, causes, findings and so
on.

Some texts have styles (``present.spans``); none has colors or a layout. Names from the program are escaped
only where a docstring mentions it.
"""
