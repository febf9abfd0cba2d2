"""Route: from (port, Host, request) to a rule, on tables in the arena; the applied resources by name.

Must never: know a connection.
"""
