# Protocol switch: selects HTTP/2 for a connection: by ALPN with TLS, by the client's first bytes on a plain one.

cdef const uint8_t *H2_PREFACE = <const uint8_t *>b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


cdef bint h2_is_agreed(H1Server first) noexcept:
    """Its TLS has said so: nothing else may come, whatever it looks like (RFC 9113 3.2)."""
    return first.peer.tls and first.peer.tls_facts.alpn_h2


cdef void h2_submit_settings(nghttp2_session *frames, HttpSettings settings) noexcept:
    """What we tell a client first."""
    cdef nghttp2_settings_entry ours[5]
    ours[0].settings_id = NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS
    ours[0].value = settings.h2_streams
    ours[1].settings_id = NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE
    ours[1].value = settings.h2_stream_window
    ours[2].settings_id = NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE
    ours[2].value = settings.request_limits.head
    ours[3].settings_id = NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL
    ours[3].value = 1
    ours[4].settings_id = NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES
    ours[4].value = 1
    nghttp2_submit_settings(frames, NGHTTP2_FLAG_NONE, ours, 5)
    nghttp2_session_set_local_window_size(frames, NGHTTP2_FLAG_NONE, 0, settings.h2_window)


cdef int h2_switch(H1Server first) except -1:
    """The connection is another session's from here on."""
    cdef Engine engine = first.engine
    cdef H2Server session = H2Server.__new__(H2Server, engine, first.port, first.peer)
    engine.connections.pop(first, None)
    move_drain_timer(first, session)
    if first in engine.old:
        engine.old.discard(first)
        engine.old.add(session)
    return session.take_over(first.connection)


cdef int h2_may_switch(H1Server first, const uint8_t *data, size_t n) except -1:
    """The first bytes of a connection. 0: they are no client's preface (RFC 9113 3.3); 1: they may be one, when there are more, or
    the connection is another session's."""
    if h2_is_agreed(first):
        h2_switch(first)
        return 1
    if not first.port.settings.h2_enabled or first.peer.tls or memcmp(data, H2_PREFACE, min(n, <size_t>EF_H2_PREFACE)) != 0:
        return 0
    if n >= EF_H2_PREFACE:
        h2_switch(first)
    return 1
