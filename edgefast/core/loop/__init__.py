"""Loop: what each turn of a worker's loop provides for all connections: deadlines on one wheel, the time as text.

Must never: know the owner of a deadline, or its reason.
"""
