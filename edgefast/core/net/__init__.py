"""Bytes of one connection, in and out, whatever protocol they speak; addresses; the PROXY protocol.

Must never: know a request.
"""
