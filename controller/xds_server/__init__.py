"""xDS server: the config stream to every fleet: authentication, table differences and acknowledgements.

Must never: depend on the content of a table, or send a fleet's table to a peer with another fleet's
credential.
"""
