"""HTTP/2 on both sides: a connection's session, its streams, which stand to exchanges as an HTTP/1.1 connection does.

In: bytes. Out: events of an Exchange or of an UpstreamUser, and what these say as frames. Frames are nghttp2's; what a message may be and what
a peer may cost is csrc's (h2_text.h, h2_lines.h, h2_guard.h). Malformed streams end here.
"""
