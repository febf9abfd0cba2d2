# Clients that take nothing: of one answer, whose stream ends, or of all of them, whose connection does.
#
# In: what has moved since it was looked at last. Out: resets, counted once each; whether a connection may go on. What a stream holds is
# free as soon as it is given up: its reset may wait for as long as the client reads nothing.

cdef inline void h2_pay(H2Responder stream, size_t n) noexcept:
    """What a client takes pays for time, at most for BODY_GRACE_MS: `answerRate` is its connection's, the streams share it."""
    cdef HttpSettings settings = stream.session.port.settings
    cdef int64_t most = stream.engine.wheel.now + BODY_GRACE_MS
    if settings.answer_rate:
        most = min(stream.reads_until + <int64_t>(n * 1000 * <size_t>len(stream.session.streams) // settings.answer_rate), most)
    stream.reads_until = most


cdef size_t h2_late(H2Server session, int64_t now) except? 0:
    """Bytes of memory that it holds for streams that are behind; all of it where its socket takes nothing, either."""
    cdef H2Stream stream
    cdef size_t late = 0
    for stream in session.streams.values():
        if stream.queue.len and stream.reads_until < now:
            late += stream.counted
    return session.held if late and session.connection.write_paused else late


cdef bint h2_takes(H2Server session, int64_t now) except -1:
    """The socket has taken something since it was looked at last. One that takes nothing can be told nothing."""
    cdef Engine engine = session.engine
    cdef HttpSettings settings = session.port.settings
    cdef size_t unsent = session.connection.unsent()
    if unsent < session.unsent and (session.unsent - unsent) * 1000 >= settings.answer_rate * <uint64_t>settings.stream_idle_timeout:
        session.unsent = unsent
        session.write_by = now + settings.stream_idle_timeout
        return True
    engine.count(G_H2_BREACH + EF_H2_B_STALL - 1)
    log_refused(engine, session.peer, 400, b"http2 " + <bytes>ef_h2_breach_name(EF_H2_B_STALL))
    return False


cdef int h2_look_at_streams(H2Server session, int64_t now) except -1:
    """Answers that are complete, and whose client takes nothing of them, or not their end, have nobody else who ends them."""
    cdef H2Stream stream
    for stream in list(session.streams.values()):
        if (stream.queue.len or stream.ended) and now - stream.reads_until >= session.port.settings.stream_idle_timeout:
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
