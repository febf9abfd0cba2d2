"""Matches: hostnames, paths and what else requests are told apart by, with their precedence.

In: fields of routes and listeners. Out: ir.Match, sort keys, what hostnames have in common.
Must never: know the object that a match stands in.
"""
