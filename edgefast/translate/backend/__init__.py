"""What requests are sent to: the references of routes, and the clusters that these name.

In: Services, EndpointSlices, Backends. Out: ir.Cluster; begin with `backend.py`, then `cluster.py`.
Must never: make a connection less safe than was asked for.
"""
