"""Status: statuses that depend on more than their own object, and all statuses of a translation (`statuses.py`).

In: outcomes of every stage, observations of fleets. Out: the values of `conditions`.
Must never: put into a status what its object's readers may not know.
"""
