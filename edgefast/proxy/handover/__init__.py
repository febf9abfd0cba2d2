"""Handover: a process that starts takes the listening sockets of those that serve, and relieves them.

One conversation (protocol.py) with two sides: takeover.py asks, predecessor.py answers. Nobody is refused on the way.
"""
