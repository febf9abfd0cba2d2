"""Installed objects: CRDs, the helm chart, and the same objects made in Python.

In: values of the chart.
Out: Kubernetes objects. helm installs `chart/`; `render.py` makes equal objects for `edgefast
install`. `python -m controller.manifests.generate --write` writes the parts of both that follow
from the models.
Must never: send a request to a cluster.
"""
