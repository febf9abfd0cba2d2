"""Handover: a starting process takes the listening sockets of the serving processes and replaces them.

One protocol (protocol.py) has two sides: socket_receiver.py requests, socket_sender.py answers. No client
connection is refused during a handover.
"""
