"""The control plane: watches a cluster, runs the pure compiler, sends tables to proxies, writes statuses.

It uses `edgefast` (resources, translate, table); `edgefast` itself never imports this package.
"""
