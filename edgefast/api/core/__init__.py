"""The kinds of Kubernetes itself that the others refer to, one file each.

In: documents. Out: Structs with what is read of them; what is not read is no mistake.
Must never: show what is in a Secret.
"""
