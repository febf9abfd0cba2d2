"""Stream: layer 4 proxying: accept, connect to a backend, and the end of both connections.

Must never look into bytes, except for a configured PROXY protocol, and never send a byte to a
client that has sent none.
"""
