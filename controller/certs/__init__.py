"""Who may speak with the controller: its authority, the certificates that it issues, and their renewal.

It must never let a private key leave its Secret for a log, an error or an object of another kind.
"""
