"""Descriptors and what happens on them; bytes of one connection, in and out, whatever protocol they speak; who accepts and connects;
addresses; the PROXY protocol.

Must never: know a request.
"""
