"""The control plane's place: watches a cluster, runs the pure compiler, hands tables to proxies, writes statuses.

It is not written yet: `edgefast-controller` says so and exits with status 2. What it will use is all in `edgefast`
already (resources, translate, table); `edgefast` itself never imports this package.
"""
