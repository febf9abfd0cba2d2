"""Heads: header operations of rules, the backend's request head, the client's response head, and trailers.

In: the received head and its spans. Out: HTTP/1.1 text, copied once. Must never: send.
"""
