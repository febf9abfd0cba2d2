"""Core: the Kubernetes kinds that other kinds refer to, one file each.

In: documents. Out: Structs with the fields that edgefast reads; other fields are no mistake.
Must never: show the content of a Secret.
"""
