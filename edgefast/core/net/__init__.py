"""Net: descriptors and their events; the bytes of one connection of any protocol; accept and connect; addresses; the PROXY protocol.

Must never: know a request.
"""
