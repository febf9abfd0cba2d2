"""HTTP/2 with clients: a connection's session, its streams, which stand to exchanges as an HTTP/1.1 connection does.

In: bytes. Out: an Exchange's events, and what it says as frames. Frames are nghttp2's; what a message may be and what a client may cost
is csrc's (h2_text.h, h2_lines.h, h2_guard.h). Malformed streams end here.
"""
