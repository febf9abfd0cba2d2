"""Dependencies: the facts that translation reads, their readers, and what changed. This makes translation incremental.

In: the snapshot. Out: answers, each recorded with its reader; start with `dependency_facts.py`, then
`change.py` and `readers.py`. The values of the answers are here as well: cluster names, permitted
references, policies as routes see them.
Must never: give an answer without a record.
"""
