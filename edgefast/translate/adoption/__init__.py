"""Adoption: policies of Envoy Gateway on the routes and Gateways that they name (`--adopt`).

In: a snapshot with adopted objects (api/migration/adoption). Out: a snapshot that the pipeline translates as any other.
Must never: change an object that no adopted policy names.
"""
