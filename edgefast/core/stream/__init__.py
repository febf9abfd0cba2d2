"""Connections that are passed on unread (layer 4): who takes them, how they reach a backend, how both ends of them end.

Must never look into bytes for anything but the PROXY protocol that was agreed on, and never send a byte to who has sent none.
"""
