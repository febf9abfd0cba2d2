"""Backends: the backend references of routes, and the clusters that they name.

In: Services, EndpointSlices, Backends. Out: ir.Cluster; start with `backend.py`, then `cluster.py`.
Must never: make a connection less safe than the objects require.
"""
