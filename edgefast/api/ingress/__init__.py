"""Kinds of networking.k8s.io: Ingress and IngressClass.

In: documents. Out: frozen structs. edgefast/translate/ingress translates them into objects of the Gateway API.
Must never: read an annotation; edgefast/translate/ingress does.
"""
