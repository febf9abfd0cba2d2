"""Certificates of the controller: its authority, the certificates that it issues, and their renewal.

Must never: copy a private key from its Secret to a log, an error or an object of another kind.
"""
