"""Statuses that more than their own object decides, and all statuses of a translation (`statuses.py`).

In: outcomes of every stage, what is observed of fleets. Out: the values of `conditions`.
Must never: say of an object what it may not know.
"""
