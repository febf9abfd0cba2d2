"""Policies: which of them are in force on what they target, and what they ask for. One file per kind.

In: policies and their targets. Out: the views that `deps` gives to routes and clusters.
Must never: let a policy that is broken count as none.
"""
