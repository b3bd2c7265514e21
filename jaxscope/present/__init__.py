"""Words: the templates of all messages, and what makes text of data.

No colours, no layout, nothing is escaped here.
"""
