"""Where requests go: clusters, their endpoints and health, names that are resolved, connections that are kept.

In: ir.Cluster and users that need a connection. Out: a connection, now or later, or why there is none.
"""
