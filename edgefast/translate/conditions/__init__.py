"""Conditions: statuses as values: their types, conditions, and all reasons.

In: decisions of the other stages. Out: Structs. `status` builds what depends on more than one
object.
Must never: decide anything.
"""
