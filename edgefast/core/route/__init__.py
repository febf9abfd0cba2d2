"""From (port, Host, request) to a rule, on tables that lie in the arena; what is applied, by name.

Must never: know a connection.
"""
