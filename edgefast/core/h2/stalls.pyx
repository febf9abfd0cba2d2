# Clients that take nothing: of one answer, whose stream ends, or of all of them, whose connection does.
#
# In: what has moved since it was looked at last. Out: resets, counted once each; whether a connection may go on. What a stream holds is
# free as soon as it is given up: its reset may wait for as long as the client reads nothing.

cdef bint h2_takes(H2Server session, int64_t now) except -1:
    """The socket has taken something since it was looked at last. One that takes nothing can be told nothing."""
    cdef Engine engine = session.engine
    cdef size_t unsent = session.connection.unsent()
    if unsent < session.unsent:
        session.unsent = unsent
        session.write_by = now + session.port.settings.stream_idle_timeout
        return True
    engine.count(G_H2_BREACH + EF_H2_B_STALL - 1)
    log_refused(engine, session.peer, 400, b"http2 " + <bytes>ef_h2_breach_name(EF_H2_B_STALL))
    return False


cdef int h2_look_at_streams(H2Server session, int64_t now) except -1:
    """Answers that are complete, and whose client takes nothing of them, have nobody else who ends them."""
    cdef H2Stream stream
    for stream in list(session.streams.values()):
        if stream.queue.len and now - stream.moved >= session.port.settings.stream_idle_timeout:
            session.engine.count(G_H2_BREACH + EF_H2_B_STALL - 1)
            stream.give_up(NGHTTP2_CANCEL)
    return 0


cdef void h2_excuse(H2Server session, int64_t now) noexcept:
    """While nothing can be sent, nothing is read: what the client owes us is not late."""
    if session.ack_by:
        session.ack_by = now + H2_ACK_MS
    if session.block_by:
        session.block_by = now + session.port.settings.head_timeout
    if session.ping_by:
        session.ping_by = now + H2_PING_MS
