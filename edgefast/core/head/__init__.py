"""Heads as they leave: header operations of rules, the backend's request head, the client's response head; which trailers stay.

In: the received head and its spans. Out: HTTP/1.1 text, copied once. Must never: send.
"""
