"""Fleets: which Gateways share a set of proxies, what they agree on, what is made around it, and what it serves.

In: drafts of Gateways, virtual hosts, clusters. Out: ir.Fleet, ir.Infra; begin with `fleet.py`, then `merge.py` and
`assemble.py`. Must never: give a fleet what it does not use.
"""
