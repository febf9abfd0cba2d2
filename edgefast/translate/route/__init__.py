"""Routes: which listeners take them, the translation of their rules, and the totals over all routes.

In: a route and a Reader. Out: `RouteOutcome`s; `routes.py` decides which routes are translated.
`route.py` translates one and `rule.py` one of its rules.
Must never: read around the Reader.
"""
