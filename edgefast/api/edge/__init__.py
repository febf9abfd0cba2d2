"""Edge: the kinds of `gateway.edge.io`, one file each; CRDs and reference pages are made from these Structs.

In: documents. Out: Structs with limits, defaults and the texts of the reference.
Must never: hold a field that nothing reads.
"""
