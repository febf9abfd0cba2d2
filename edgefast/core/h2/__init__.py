"""HTTP/2 on both sides: a connection's session, and its streams, each with the role of an HTTP/1.1 connection to its exchange.

In: bytes. Out: events of an Exchange or of an UpstreamUser, and their output as frames. nghttp2
handles frames. csrc checks messages and bounds the cost of a peer (h2_text.h, h2_lines.h,
h2_guard.h). Malformed streams end here.
"""
