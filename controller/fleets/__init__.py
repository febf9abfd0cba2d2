"""Fleets as Kubernetes objects: rendering, applying, repair, removal and observation.

In: `ir.Infra` of a translation.
Out: objects in the cluster, and `FleetState`s. Rendering is pure.
Must never: touch an object that this controller did not create.
"""
