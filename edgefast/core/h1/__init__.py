"""HTTP/1.1 on both sides: the client's requests and their answers, the backend's answers; framing and its parser check.

In: bytes. Out: an Exchange's events, and its output as bytes. Framing faults end here.
"""
