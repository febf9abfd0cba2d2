"""Convert: Ingresses -> objects of the Gateway API and of edgefast that serve the same, as a person would write them.

In: a snapshot, the settings of Ingresses, the name of the Gateway. Out: `Conversion`: objects with comments, and a report by
Ingress and annotation.
The objects are those that edgefast serves for the Ingresses (edgefast/translate/ingress), with public names and fields. The order
of the modules: pieces (routes of each Ingress), order (rules that need an order), grouping (routes with equal rules), names,
convert (objects), standard (fields of the Gateway API in place of ours), report, render (YAML).
Must never: decide what an annotation means; the translation of Ingresses does.
"""
