"""Providers: sources of objects without a cluster.

In: paths that the user gives.
Out: snapshots of objects, and the problems that the provider found.
Must never: translate, or depend on the component that serves the objects.
"""
