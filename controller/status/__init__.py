"""Statuses of objects: delay, merge with the statuses of others, and writes to the API server.

Must never: decide the content of a status; translate does. This package delays, merges and writes
it.
"""
