"""Statuses as values: their types, conditions, and every reason that one may have.

In: what others decided. Out: Structs. What more than one object decides is put together in `status`.
Must never: decide anything.
"""
