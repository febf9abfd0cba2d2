"""Routes: which listeners take them, what their rules become, and what all of them come to.

In: a route and a Reader. Out: `RouteOutcome`s; `routes.py` decides which routes are translated, `route.py` translates one and
`rule.py` one of its rules. Must never: read around the Reader.
"""
