# Client callbacks: nghttp2 callbacks of a backend's connection, from C to session and calls. callbacks.pyx has those of both sides.

cdef inline H2Call h2_call(nghttp2_session *frames, int32_t id):
    cdef H2Outflow *out = h2_outflow(frames, id)
    return <H2Call>out.stream if out != NULL else None


cdef int h2c_on_frame(nghttp2_session *frames, const nghttp2_frame *frame, void *user) noexcept:
    cdef H2Client session = <H2Client>user
    cdef H2Call call
    cdef bint ends = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0
    try:
        if frame.hd.type == NGHTTP2_HEADERS:
            if session.block == frame.hd.stream_id:
                session.block = 0
                call = h2_call(frames, frame.hd.stream_id)
                if call is not None and call.user is not None:
                    call.on_block(ends)
        elif frame.hd.type == NGHTTP2_DATA:
            if ends:
                call = h2_call(frames, frame.hd.stream_id)
                if call is not None and call.user is not None:
                    call.finish()
        elif frame.hd.type == NGHTTP2_SETTINGS:
            if frame.hd.flags & NGHTTP2_FLAG_ACK:
                session.ack_by = 0
            else:
                session.on_settings()
        elif frame.hd.type == NGHTTP2_PING:
            if frame.hd.flags & NGHTTP2_FLAG_ACK:
                session.ping_by = 0
        elif frame.hd.type == NGHTTP2_RST_STREAM:
            call = h2_call(frames, frame.hd.stream_id)
            if call is not None:
                call.was_reset = True
        elif frame.hd.type == NGHTTP2_GOAWAY:
            session.drain()
    except BaseException as error:
        return h2_fault(session, error)
    return 0


cdef int h2c_on_invalid_frame(nghttp2_session *frames, const nghttp2_frame *frame, int why, void *user) noexcept:
    cdef H2Client session = <H2Client>user
    if frame.hd.type == NGHTTP2_HEADERS and session.block == frame.hd.stream_id:
        session.block = 0
    return 0


cdef int h2c_on_data(
    nghttp2_session *frames, uint8_t flags, int32_t id, const uint8_t *data, size_t n, void *user
) noexcept:
    cdef H2Client session = <H2Client>user
    cdef H2Call call
    try:
        call = h2_call(frames, id)
        if call is None:
            nghttp2_session_consume_connection(frames, n)
        else:
            call.body(data, n)
    except BaseException as error:
        return h2_fault(session, error)
    return 0


cdef int h2c_on_sent(nghttp2_session *frames, const nghttp2_frame *frame, void *user) noexcept:
    """A frame of ours is in the buffer."""
    cdef H2Client session = <H2Client>user
    cdef H2Call call
    ef_h2_guard_sent(&session.guard, frame.hd.type, frame.hd.flags, frame.hd.length, session.engine.wheel.now)
    try:
        if frame.hd.type == NGHTTP2_RST_STREAM:
            call = h2_call(frames, frame.hd.stream_id)
            if (call is None or not call.counted) and ef_h2_guard_reset(&session.guard, session.engine.wheel.now) != EF_H2_CALM:
                h2_retire(session)
        if frame.hd.type == NGHTTP2_HEADERS or frame.hd.type == NGHTTP2_DATA:
            call = h2_call(frames, frame.hd.stream_id)
            if call is not None:
                if frame.hd.type == NGHTTP2_HEADERS and call.unprocessed:
                    session.fresh.append(call)
                if frame.hd.flags & NGHTTP2_FLAG_END_STREAM:
                    call.sent_end()
    except BaseException as error:
        return h2_fault(session, error)
    return 0


cdef int h2c_on_not_sent(nghttp2_session *frames, const nghttp2_frame *frame, int why, void *user) noexcept:
    """A frame of ours that cannot go out: of a request, nobody has seen it; of its trailers, nobody would hear of it again."""
    cdef H2Client session = <H2Client>user
    cdef H2Call call
    try:
        if frame.hd.type == NGHTTP2_HEADERS:
            call = session.streams.get(frame.hd.stream_id)
            if call is not None and call.unprocessed:
                session.streams.pop(frame.hd.stream_id)
                call.close(NGHTTP2_REFUSED_STREAM)
                session.on_freed()
            elif call is not None:
                nghttp2_submit_rst_stream(frames, NGHTTP2_FLAG_NONE, frame.hd.stream_id, NGHTTP2_INTERNAL_ERROR)
    except BaseException as error:
        return h2_fault(session, error)
    return 0


cdef void h2_add_client_callbacks(nghttp2_session_callbacks *to) noexcept:
    nghttp2_session_callbacks_set_on_frame_recv_callback(to, h2c_on_frame)
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(to, h2c_on_invalid_frame)
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(to, h2c_on_data)
    nghttp2_session_callbacks_set_on_frame_send_callback(to, h2c_on_sent)
    nghttp2_session_callbacks_set_on_frame_not_send_callback(to, h2c_on_not_sent)
