"""Validation: rules over several fields, as CRDs state them in CEL: `rules.py` has all of them, the other files those of one subject.

In: built Structs. Out: violations (`rule.py`). Must never: decide what this product supports.
"""
