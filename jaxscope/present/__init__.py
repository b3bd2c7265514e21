"""Turn data into text: the templates of all messages, and functions that write sizes, causes, findings and so
on.

Some texts have styles (``present.spans``); none has colors or a layout. Most functions keep names from the
user's program unchanged: the code that prints a text replaces the control characters in it
(``present.escape``). Doing so twice does no harm.
"""
