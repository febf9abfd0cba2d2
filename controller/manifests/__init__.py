"""What is installed in a cluster: CRDs, the helm chart, and the same objects made in Python.

In: values of the chart. Out: Kubernetes objects. `chart/` is what helm installs, `render.py` makes equal objects for
`edgefast install`; `python -m controller.manifests.generate --write` writes the parts of both that follow from the models.
Must never: ask a cluster anything.
"""
