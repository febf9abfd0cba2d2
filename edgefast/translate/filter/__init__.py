"""Filters of rules and of backendRefs: `filter.py` is the list of one rule, beside it the payloads, one file each.

In: HTTPRouteFilters. Out: their IR, with a problem for each that cannot be served.
Must never: leave one out silently.
"""
