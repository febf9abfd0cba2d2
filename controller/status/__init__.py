"""Statuses of objects: what may be said now, how it joins what others said, and how it gets to the API server.

It must never decide what a status says: translate does; here it is held back, merged and written.
"""
