"""Policies: which apply to their targets, and what they require. One file per kind.

In: policies and their targets. Out: the views that `deps` gives to routes and clusters.
Must never: treat a broken policy as no policy.
"""
