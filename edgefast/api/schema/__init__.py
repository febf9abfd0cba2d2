"""Schema: schemas of CRDs and reference pages, made from the same Structs that decode.

In: the models. Out: OpenAPI schemas (`schema.py`), Markdown (`refdoc.py`). Must never: document
what the decoder does not do.
"""
