"""The config stream between controller and proxies: delta xDS with edgefast's own resource types.

Must never: decide which proxy gets which resource (controller/push), or apply a table
(proxy/pipelines/managed.py).
"""
