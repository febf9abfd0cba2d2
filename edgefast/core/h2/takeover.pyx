# Where a plain connection becomes one of HTTP/2: by what its client says first.

cdef const uint8_t *H2_PREFACE = <const uint8_t *>b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


cdef int h2_takes_over(H1Server first, const uint8_t *data, size_t n) except -1:
    """The first bytes of a plain connection. 0: they are no client's preface (RFC 9113 3.3); 1: they may be one, when there are more, or
    they are, and the connection is another session's from here on."""
    cdef H2Server session
    if not first.port.settings.h2_enabled or first.peer.tls or memcmp(data, H2_PREFACE, min(n, <size_t>EF_H2_PREFACE)) != 0:
        return 0
    if n >= EF_H2_PREFACE:
        first.engine.connections.discard(first)
        session = H2Server.__new__(H2Server, first.engine, first.port, first.peer)
        session.take_over(first.connection)
    return 1
