"""Fleets: which Gateways share a set of proxies, their shared settings, their infrastructure and what they serve.

In: drafts of Gateways, virtual hosts, clusters. Out: ir.Fleet, ir.Infra; start with `fleet.py`,
then `merge.py` and `assemble.py`.
Must never: give a fleet what it does not use.
"""
