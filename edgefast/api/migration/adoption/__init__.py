"""Adoption: documents of Envoy Gateway as documents of edgefast (`--adopt`).

In: one plain document. Out: the same as a kind of gateway.edge.io, its settings for routes and Gateways, and a note for each field
that has no counterpart.
Must never: drop a field without a note, or a field that decides access at all.
"""
