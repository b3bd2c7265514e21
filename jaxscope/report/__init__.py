"""Print a run (the recording of a program) as text, HTML, JSON and other formats, for people and for
programs.

Texts that come from the user's program are escaped, so that they are never markup or control codes.
"""
