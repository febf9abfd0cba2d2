"""The config stream between controller and proxies: delta xDS with edgefast's own resource types.

Must never: decide which proxy gets which resource (controller/xds_server), or apply a table
(proxy/pipelines/managed.py).
"""
