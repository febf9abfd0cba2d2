"""Where objects come from when there is no cluster.

In: paths of the user's. Out: snapshots of objects and the problems found on the way.
Must never: translate, or know who serves what it yields.
"""
