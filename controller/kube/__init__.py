"""Access to the cluster: a REST client, reflectors, a cache of Snapshots, and the leader's Lease.

In: a Kubernetes API server.
Out: immutable objects and calls with deadlines.
Must never: translate, decide what is written, or raise for the content of an object.
"""
