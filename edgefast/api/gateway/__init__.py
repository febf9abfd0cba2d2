"""Gateway: the kinds of the Gateway API (`gateway.networking.k8s.io`), one file each.

In: documents. Out: Structs with the CRDs' fields, limits and defaults.
Must never: decide what this product supports of them.
"""
