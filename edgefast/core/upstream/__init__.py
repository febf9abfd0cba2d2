"""Upstream: clusters, their endpoints and health, resolved names, and pooled connections.

In: ir.Cluster and users that need a connection. Out: a connection, now or later, or why it failed.
"""
