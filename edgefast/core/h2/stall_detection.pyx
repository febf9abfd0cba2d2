# Stall detection: clients that do not read. A stalled answer ends its stream; a client that reads none of them loses its connection.
#
# In: the progress since the last check. Out: resets, counted once each; whether a connection may go on. The memory of a stream is free as
# soon as it is abandoned: its reset may wait for as long as the client reads nothing.

cdef inline void h2_credit(H2Responder stream, size_t n) noexcept:
    """What a client takes pays for time, at most for BODY_GRACE_MS: `answerRate` is its connection's, the streams share it."""
    cdef HttpSettings settings = stream.session.port.settings
    cdef int64_t most = stream.engine.wheel.now + BODY_GRACE_MS
    if settings.answer_rate:
        most = min(stream.reads_until + <int64_t>(n * 1000 * <size_t>len(stream.session.streams) // settings.answer_rate), most)
    stream.reads_until = most


cdef inline bint h2_is_late(H2Responder stream, int64_t now) noexcept:
    """Its client is what it waits for: to take the answer, or to send the request."""
    cdef Exchange ex = stream.exchange
    if stream.reads_until >= now:
        return False
    return stream.out.queue.len > 0 or (ex is not None and not stream.answered and ex.body.expected and not ex.body.done and not ex.comes())


cdef inline bint h2_is_fresh(H2Responder stream, int64_t now) noexcept:
    """Nothing of an answer has been taken that would pay for more than its first patience: whoever asks for many has them all at once."""
    return not stream.answered or (stream.out.queue.len > 0 and stream.reads_until <= now + BODY_PATIENCE_MS)


cdef int h2_look_at_held(H2Server session, int64_t now) except -1:
    """What it holds for streams that are behind, all of it where its socket takes nothing, either; and for fresh ones."""
    cdef H2Stream stream
    session.late = session.fresh = 0
    for stream in session.streams.values():
        if h2_is_late(stream, now):
            session.late += stream.counted
        elif h2_is_fresh(stream, now):
            session.fresh += stream.counted
    if session.late and session.connection.write_paused:
        session.late = session.held
        session.fresh = 0
    return 0


cdef int h2_report_stall(H2Server session) except -1:
    """An answer that nobody takes, whether its stream ends or its connection."""
    session.engine.count(G_H2_BREACH + EF_H2_B_STALL - 1)
    return session.engine.observer.log_refused(session.peer, 400, b"http2 " + <bytes>ef_h2_breach_name(EF_H2_B_STALL))


cdef bint h2_takes(H2Server session, int64_t now) except -1:
    """The socket has taken something since it was looked at last. One that takes nothing can be told nothing."""
    cdef HttpSettings settings = session.port.settings
    cdef size_t unsent = session.connection.unsent()
    if unsent < session.unsent and (session.unsent - unsent) * 1000 >= settings.answer_rate * <uint64_t>settings.stream_idle_timeout:
        session.unsent = unsent
        session.write_by = now + settings.stream_idle_timeout
        return True
    h2_report_stall(session)
    return False


cdef int h2_look_at_streams(H2Server session, int64_t now) except -1:
    """Resets streams that only their client could end: complete answers that it does not read, and requests and tunnels that continue
    after their answer."""
    cdef H2Stream stream
    for stream in list(session.streams.values()):
        if stream.end_by:
            if stream.end_by <= now:
                if not stream.is_reset:
                    stream.reset(NGHTTP2_NO_ERROR)
            elif not session.look_at or session.look_at > stream.end_by:
                session.look_at = stream.end_by
        elif (stream.out.queue.len or stream.out.ended) and now - stream.reads_until >= session.port.settings.stream_idle_timeout:
            h2_report_stall(session)
            stream.give_up(NGHTTP2_CANCEL)
    return 0


cdef void h2_extend_deadlines(H2Server session, int64_t now) noexcept:
    """While nothing can be sent, nothing is read: what the client owes us is not late."""
    if session.ack_by:
        session.ack_by = now + H2_ACK_MS
    if session.block_by:
        session.block_by = now + session.port.settings.head_timeout
    if session.ping_by:
        session.ping_by = now + H2_PING_MS
