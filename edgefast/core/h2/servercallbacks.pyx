# Server callbacks: nghttp2 callbacks of a client's connection, from C to session and streams. callbacks.pyx has those of both sides.

cdef inline H2Stream h2_stream(nghttp2_session *frames, int32_t id):
    cdef H2Outflow *out = h2_outflow(frames, id)
    return <H2Stream>out.stream if out != NULL else None


cdef int h2_on_begin_frame(nghttp2_session *frames, const nghttp2_frame_hd *hd, void *user) noexcept:
    """A client may pass numbers over, but not come back to them (RFC 9113 5.1.1)."""
    cdef H2Server session = <H2Server>user
    if hd.type != NGHTTP2_HEADERS or not hd.stream_id & 1:
        return 0
    if hd.stream_id > session.last:
        session.skips = session.skips or hd.stream_id > session.last + 2
        session.last = hd.stream_id
    elif session.skips and nghttp2_session_find_stream(frames, hd.stream_id) == NULL:
        session.off_order = True
        return NGHTTP2_ERR_CALLBACK_FAILURE
    return 0


cdef int h2_on_frame(nghttp2_session *frames, const nghttp2_frame *frame, void *user) noexcept:
    cdef H2Server session = <H2Server>user
    cdef H2Stream stream
    cdef bint ends = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0
    try:
        if frame.hd.type == NGHTTP2_HEADERS:
            session.on_block(frame.hd.stream_id, ends)
        elif frame.hd.type == NGHTTP2_DATA:
            if ends:
                stream = h2_stream(frames, frame.hd.stream_id)
                if stream is not None:
                    stream.end()
        elif frame.hd.type == NGHTTP2_SETTINGS:
            if frame.hd.flags & NGHTTP2_FLAG_ACK:
                session.ack_by = 0
        elif frame.hd.type == NGHTTP2_PING:
            if frame.hd.flags & NGHTTP2_FLAG_ACK:
                session.ping_by = 0
        elif frame.hd.type == NGHTTP2_RST_STREAM:
            session.engine.count(G_H2_RESET)
    except BaseException as error:
        return h2_fault(session, error)
    return 0


cdef int h2_on_invalid_frame(nghttp2_session *frames, const nghttp2_frame *frame, int why, void *user) noexcept:
    cdef H2Server session = <H2Server>user
    cdef H2Stream stream = h2_stream(frames, frame.hd.stream_id)
    if stream is not None:
        stream.is_reset = True  # or all of the connection ends
    if why == NGHTTP2_ERR_REFUSED_STREAM:
        session.engine.count(G_H2_REFUSED)
        session.breach = ef_h2_guard_refuse(&session.guard, session.engine.wheel.now)
        if session.breach:
            return NGHTTP2_ERR_CALLBACK_FAILURE
    elif frame.hd.type == NGHTTP2_HEADERS:
        session.engine.count(G_H2_MALFORMED)
    if frame.hd.type == NGHTTP2_HEADERS and session.block == frame.hd.stream_id:
        session.block = 0
        session.block_by = 0
    return 0


cdef int h2_on_data(
    nghttp2_session *frames, uint8_t flags, int32_t id, const uint8_t *data, size_t n, void *user
) noexcept:
    cdef H2Server session = <H2Server>user
    cdef H2Stream stream
    try:
        stream = h2_stream(frames, id)
        if stream is None:
            nghttp2_session_consume(frames, id, n)
            return 0
        stream.body(data, n)
    except BaseException as error:
        return h2_fault(session, error)
    return 0


cdef int h2_on_sent(nghttp2_session *frames, const nghttp2_frame *frame, void *user) noexcept:
    """A frame of ours is in the buffer."""
    cdef H2Server session = <H2Server>user
    cdef H2Stream stream
    cdef uint32_t code
    if frame.hd.type == NGHTTP2_HEADERS:
        stream = h2_stream(frames, frame.hd.stream_id)
        if stream is not None:
            stream.heads = 0
            stream.recount()
    ef_h2_guard_sent(&session.guard, frame.hd.type, frame.hd.flags, frame.hd.length, session.engine.wheel.now)
    if frame.hd.type == NGHTTP2_RST_STREAM:
        code = frame.rst_stream.error_code
        # those that the client has brought about: a request that is malformed is as cheap for it as a reset of its own
        if code != NGHTTP2_NO_ERROR and code != NGHTTP2_INTERNAL_ERROR and code != NGHTTP2_REFUSED_STREAM and code != NGHTTP2_CANCEL:
            if session.breach == EF_H2_CALM:
                session.breach = ef_h2_guard_reset(&session.guard, session.engine.wheel.now)
    elif (frame.hd.type == NGHTTP2_DATA or frame.hd.type == NGHTTP2_HEADERS) and frame.hd.flags & NGHTTP2_FLAG_END_STREAM:
        stream = h2_stream(frames, frame.hd.stream_id)
        if stream is not None and not stream.request_over:
            stream.await_end(LINGER_MS if stream.tunnel else H2_EARLY_MS)
    return 0


cdef int h2_on_not_sent(nghttp2_session *frames, const nghttp2_frame *frame, int why, void *user) noexcept:
    """A frame of ours that cannot go out. Of an answer's head or trailers nobody would hear again."""
    if frame.hd.type == NGHTTP2_HEADERS and nghttp2_session_find_stream(frames, frame.hd.stream_id) != NULL:
        nghttp2_submit_rst_stream(frames, NGHTTP2_FLAG_NONE, frame.hd.stream_id, NGHTTP2_INTERNAL_ERROR)
    return 0


cdef void h2_add_server_callbacks(nghttp2_session_callbacks *to) noexcept:
    nghttp2_session_callbacks_set_on_begin_frame_callback(to, h2_on_begin_frame)
    nghttp2_session_callbacks_set_on_frame_recv_callback(to, h2_on_frame)
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(to, h2_on_invalid_frame)
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(to, h2_on_data)
    nghttp2_session_callbacks_set_on_frame_send_callback(to, h2_on_sent)
    nghttp2_session_callbacks_set_on_frame_not_send_callback(to, h2_on_not_sent)
