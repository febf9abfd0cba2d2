# What nghttp2 calls of a backend's connection: from C to the session and its calls. As callbacks.pyx has it of clients'.

cdef nghttp2_session_callbacks *H2_CLIENT_CALLBACKS = NULL


cdef int h2c_fault(H2Client session, object error) noexcept:
    session.fault = error
    return NGHTTP2_ERR_CALLBACK_FAILURE


cdef inline H2Call h2_call(nghttp2_session *frames, int32_t id):
    cdef void *call = nghttp2_session_get_stream_user_data(frames, id)
    return <H2Call>call if call != NULL else None


cdef int h2c_on_begin_headers(nghttp2_session *frames, const nghttp2_frame *frame, void *user) noexcept:
    cdef H2Client session = <H2Client>user
    try:
        if frame.hd.type == NGHTTP2_HEADERS:
            session.on_begin_block(frame.hd.stream_id)
    except BaseException as error:
        return h2c_fault(session, error)
    return 0


cdef int h2c_on_header(
    nghttp2_session *frames, const nghttp2_frame *frame, const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len,
    uint8_t flags, void *user
) noexcept:
    cdef H2Client session = <H2Client>user
    cdef ef_head_limits *limits = &H2_TRAILER_LIMITS if session.is_trailer else &session.settings.response_limits
    if session.block != frame.hd.stream_id:
        return 0
    if ef_h2_text_field(&session.text, limits, name, name_len, value, value_len) == EF_H2_CLOSE:
        session.breach = EF_H2_B_HEAD
        return NGHTTP2_ERR_CALLBACK_FAILURE
    return 0


cdef int h2c_on_invalid_header(
    nghttp2_session *frames, const nghttp2_frame *frame, const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len,
    uint8_t flags, void *user
) noexcept:
    """It would leave this field out and go on."""
    (<H2Client>user).is_malformed = True
    return h2c_on_header(frames, frame, name, name_len, value, value_len, flags, user)


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
        return h2c_fault(session, error)
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
        return h2c_fault(session, error)
    return 0


cdef int h2c_on_sent(nghttp2_session *frames, const nghttp2_frame *frame, void *user) noexcept:
    """A frame of ours is in the buffer."""
    cdef H2Client session = <H2Client>user
    cdef H2Call call
    ef_h2_guard_sent(&session.guard, frame.hd.type, frame.hd.flags, frame.hd.length, session.engine.wheel.now)
    try:
        if frame.hd.type == NGHTTP2_HEADERS or frame.hd.type == NGHTTP2_DATA:
            call = h2_call(frames, frame.hd.stream_id)
            if call is not None:
                if frame.hd.type == NGHTTP2_HEADERS and call.unprocessed:
                    session.fresh.append(call)
                if frame.hd.flags & NGHTTP2_FLAG_END_STREAM:
                    call.sent_end()
    except BaseException as error:
        return h2c_fault(session, error)
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
        return h2c_fault(session, error)
    return 0


cdef int h2c_on_stream_close(nghttp2_session *frames, int32_t id, uint32_t code, void *user) noexcept:
    cdef H2Client session = <H2Client>user
    cdef H2Call call
    try:
        call = session.streams.pop(id, None)
        nghttp2_session_set_stream_user_data(frames, id, NULL)
        if session.block == id:
            session.block = 0
        if call is not None:
            call.close(code)
            session.on_freed()
    except BaseException as error:
        return h2c_fault(session, error)
    return 0


cdef ssize_t h2_read_request(
    nghttp2_session *frames, int32_t id, uint8_t *buffer, size_t room, uint32_t *flags, nghttp2_data_source *source, void *user
) noexcept:
    """How much of a body there is; h2c_send_body takes it."""
    cdef H2Call call = h2_call(frames, id)
    cdef H2Client session = <H2Client>user
    cdef int n
    cdef size_t here
    if call is None:
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE
    here = call.queue.len if call.queue.len < room else room
    if here == call.queue.len and call.ended:
        flags[0] |= NGHTTP2_DATA_FLAG_EOF
        if call.trailers.size:
            n = ef_h2_lines_trailers(call.trailers.data, call.trailers.size, session.engine.h2_pairs, H2_PAIRS)
            if n > 0:
                flags[0] |= NGHTTP2_DATA_FLAG_NO_END_STREAM
                nghttp2_submit_trailer(frames, id, <const nghttp2_nv *>session.engine.h2_pairs, n)
            call.trailers.size = 0
    elif here == 0:
        call.deferred = True
        return NGHTTP2_ERR_DEFERRED
    flags[0] |= NGHTTP2_DATA_FLAG_NO_COPY
    return here


cdef int h2c_send_body(
    nghttp2_session *frames, nghttp2_frame *frame, const uint8_t *head, size_t n, nghttp2_data_source *source, void *user
) noexcept:
    cdef H2Client session = <H2Client>user
    cdef Out *out = &session.engine.h2_out
    cdef H2Call call
    if out.size >= H2_SEND:
        return NGHTTP2_ERR_WOULDBLOCK
    try:
        call = h2_call(frames, frame.hd.stream_id)
        if call is None or call.queue.len < n:
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE
        out_reserve(out, n + 9)
        out_raw(out, head, 9)
        if n:
            out_raw(out, call.queue.data + call.queue.at, n)
            call.took(n)
    except BaseException as error:
        return h2c_fault(session, error)
    return 0


cdef int h2_prepare_client() except -1:
    """Once: what all sessions have in common."""
    global H2_CLIENT_CALLBACKS
    h2_prepare()
    if H2_CLIENT_CALLBACKS != NULL:
        return 0
    if nghttp2_session_callbacks_new(&H2_CLIENT_CALLBACKS) < 0:
        raise MemoryError
    nghttp2_session_callbacks_set_on_begin_headers_callback(H2_CLIENT_CALLBACKS, h2c_on_begin_headers)
    nghttp2_session_callbacks_set_on_header_callback(H2_CLIENT_CALLBACKS, h2c_on_header)
    nghttp2_session_callbacks_set_on_invalid_header_callback(H2_CLIENT_CALLBACKS, h2c_on_invalid_header)
    nghttp2_session_callbacks_set_on_frame_recv_callback(H2_CLIENT_CALLBACKS, h2c_on_frame)
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(H2_CLIENT_CALLBACKS, h2c_on_invalid_frame)
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(H2_CLIENT_CALLBACKS, h2c_on_data)
    nghttp2_session_callbacks_set_on_frame_send_callback(H2_CLIENT_CALLBACKS, h2c_on_sent)
    nghttp2_session_callbacks_set_on_frame_not_send_callback(H2_CLIENT_CALLBACKS, h2c_on_not_sent)
    nghttp2_session_callbacks_set_send_data_callback(H2_CLIENT_CALLBACKS, h2c_send_body)
    nghttp2_session_callbacks_set_on_stream_close_callback(H2_CLIENT_CALLBACKS, h2c_on_stream_close)
    return 0
