"""Reasons: every word that says why something is not as it was asked for, and what there is to know of it.

`word.py` has the words as a type, so that no Problem can have another; the other files have a `Page` for each: what it
means and how it is put right, with an example that brings it about. docs/problems and `edgefast problem` are made from them.
"""
