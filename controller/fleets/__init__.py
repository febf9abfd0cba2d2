"""Fleets as Kubernetes objects: what is rendered for them, applied, repaired, removed, and what is seen of them.

In: `ir.Infra` of a translation. Out: objects in the cluster, and `FleetState`s. Rendering is pure. It must never touch
an object that it did not make.
"""
