"""Facts: what translation looks at, who looked, and what changed since. This makes it incremental.

In: the snapshot. Out: answers, each with a note of who asked; begin with `world.py`, then `change.py` and `readers.py`. What
the answers are made of is here as well: names of clusters, permitted references, policies as routes see them.
Must never: give an answer that leaves no note.
"""
