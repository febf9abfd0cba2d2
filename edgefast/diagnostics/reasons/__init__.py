"""Reasons: every reason of a problem or condition, with its documentation.

`word.py` defines the reasons as a type, so that a Problem can have no other. The other files
contain a `Page` for each: its meaning, the fix, and an example that causes it. docs/problems and
`edgefast problem` are made from them.
"""
