"""The way to the cluster: a REST client, reflectors, a cache that gives Snapshots, and the leader's Lease.

In: a Kubernetes API server. Out: immutable objects and calls with deadlines. It must never translate, decide what
is written, or raise for what an object holds.
"""
