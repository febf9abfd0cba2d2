"""Handover: a starting process takes the listening sockets of the serving processes and replaces them.

One protocol (protocol.py) has two sides: takeover.py requests, predecessor.py answers. No client
connection is refused during a handover.
"""
