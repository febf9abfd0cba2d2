"""Filters: of rules and of backendRefs. `filter.py` translates the list of one rule; each payload has its own file.

In: HTTPRouteFilters. Out: their IR, with a problem for each that cannot be served.
Must never: omit a filter silently.
"""
