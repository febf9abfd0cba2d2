"""Our own kinds of objects (`gateway.edge.io`), one file each; CRDs and reference pages are made from these Structs.

In: documents. Out: Structs with limits, defaults and the words that the reference shows.
Must never: hold a field that nothing reads.
"""
