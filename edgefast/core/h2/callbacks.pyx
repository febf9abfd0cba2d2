# What nghttp2 calls: from C to the session and its streams.
#
# A callback must not raise: what it raises is kept, and costs the connection when nghttp2 has returned. It may submit frames, never read
# or send them.

cdef nghttp2_session_callbacks *H2_CALLBACKS = NULL
cdef nghttp2_option *H2_OPTIONS = NULL


cdef int h2_fault(H2Server session, object error) noexcept:
    session.fault = error
    return NGHTTP2_ERR_CALLBACK_FAILURE


cdef inline H2Stream h2_stream(nghttp2_session *frames, int32_t id):
    cdef void *stream = nghttp2_session_get_stream_user_data(frames, id)
    return <H2Stream>stream if stream != NULL else None


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


cdef int h2_on_begin_headers(nghttp2_session *frames, const nghttp2_frame *frame, void *user) noexcept:
    cdef H2Server session = <H2Server>user
    try:
        if frame.hd.type == NGHTTP2_HEADERS:
            session.on_begin_block(frame.hd.stream_id, frame.headers.cat != NGHTTP2_HCAT_REQUEST)
    except BaseException as error:
        return h2_fault(session, error)
    return 0


cdef int h2_on_header(
    nghttp2_session *frames, const nghttp2_frame *frame, const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len,
    uint8_t flags, void *user
) noexcept:
    cdef H2Server session = <H2Server>user
    cdef ef_head_limits *limits = &H2_TRAILER_LIMITS if session.trailing else &session.port.settings.request_limits
    if session.block != frame.hd.stream_id:
        return 0
    if ef_h2_text_field(&session.text, limits, name, name_len, value, value_len) == EF_H2_CLOSE:
        session.breach = EF_H2_B_HEAD
        return NGHTTP2_ERR_CALLBACK_FAILURE
    return 0


cdef int h2_on_invalid_header(
    nghttp2_session *frames, const nghttp2_frame *frame, const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len,
    uint8_t flags, void *user
) noexcept:
    """It would leave this field out and go on."""
    (<H2Server>user).malformed = True
    return h2_on_header(frames, frame, name, name_len, value, value_len, flags, user)


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
            nghttp2_submit_rst_stream(frames, NGHTTP2_FLAG_NONE, frame.hd.stream_id, NGHTTP2_NO_ERROR)
    return 0


cdef int h2_on_not_sent(nghttp2_session *frames, const nghttp2_frame *frame, int why, void *user) noexcept:
    """A frame of ours that cannot go out. Of an answer's head or trailers nobody would hear again."""
    if frame.hd.type == NGHTTP2_HEADERS and nghttp2_session_find_stream(frames, frame.hd.stream_id) != NULL:
        nghttp2_submit_rst_stream(frames, NGHTTP2_FLAG_NONE, frame.hd.stream_id, NGHTTP2_INTERNAL_ERROR)
    return 0


cdef int h2_on_stream_close(nghttp2_session *frames, int32_t id, uint32_t code, void *user) noexcept:
    cdef H2Server session = <H2Server>user
    cdef H2Stream stream
    try:
        stream = session.streams.pop(id, None)
        nghttp2_session_set_stream_user_data(frames, id, NULL)
        if session.block == id:
            session.block = 0
            session.block_by = 0
        if stream is not None:
            stream.close()
    except BaseException as error:
        return h2_fault(session, error)
    return 0


cdef ssize_t h2_read_body(
    nghttp2_session *frames, int32_t id, uint8_t *buffer, size_t room, uint32_t *flags, nghttp2_data_source *source, void *user
) noexcept:
    """How much of a body there is; h2_send_body takes it."""
    cdef H2Stream stream = h2_stream(frames, id)
    cdef H2Server session = <H2Server>user
    cdef int n
    cdef size_t here
    if stream is None:
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE
    here = stream.queue.len if stream.queue.len < room else room
    if here == stream.queue.len and stream.ended:
        flags[0] |= NGHTTP2_DATA_FLAG_EOF
        if stream.trailers.size:
            n = ef_h2_lines_trailers(stream.trailers.data, stream.trailers.size, session.engine.h2_pairs, H2_PAIRS)
            if n > 0:
                flags[0] |= NGHTTP2_DATA_FLAG_NO_END_STREAM
                nghttp2_submit_trailer(frames, id, <const nghttp2_nv *>session.engine.h2_pairs, n)
            stream.trailers.size = 0
    elif here == 0:
        stream.deferred = True
        return NGHTTP2_ERR_DEFERRED
    flags[0] |= NGHTTP2_DATA_FLAG_NO_COPY
    return here


cdef int h2_send_body(
    nghttp2_session *frames, nghttp2_frame *frame, const uint8_t *head, size_t n, nghttp2_data_source *source, void *user
) noexcept:
    cdef H2Server session = <H2Server>user
    cdef Out *out = &session.engine.h2_out
    cdef H2Stream stream
    if out.size >= H2_SEND:
        return NGHTTP2_ERR_WOULDBLOCK
    try:
        stream = h2_stream(frames, frame.hd.stream_id)
        if stream is None or stream.queue.len < n:
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE
        out_reserve(out, n + 9)
        out_raw(out, head, 9)
        if n:
            out_raw(out, stream.queue.data + stream.queue.at, n)
            stream.took(n)
    except BaseException as error:
        return h2_fault(session, error)
    return 0


cdef int h2_prepare() except -1:
    """Once: what all sessions have in common."""
    global H2_CALLBACKS, H2_OPTIONS
    if H2_OPTIONS != NULL:
        return 0
    if nghttp2_session_callbacks_new(&H2_CALLBACKS) < 0 or nghttp2_option_new(&H2_OPTIONS) < 0:
        raise MemoryError
    nghttp2_session_callbacks_set_on_begin_frame_callback(H2_CALLBACKS, h2_on_begin_frame)
    nghttp2_session_callbacks_set_on_begin_headers_callback(H2_CALLBACKS, h2_on_begin_headers)
    nghttp2_session_callbacks_set_on_header_callback(H2_CALLBACKS, h2_on_header)
    nghttp2_session_callbacks_set_on_invalid_header_callback(H2_CALLBACKS, h2_on_invalid_header)
    nghttp2_session_callbacks_set_on_frame_recv_callback(H2_CALLBACKS, h2_on_frame)
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(H2_CALLBACKS, h2_on_invalid_frame)
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(H2_CALLBACKS, h2_on_data)
    nghttp2_session_callbacks_set_on_frame_send_callback(H2_CALLBACKS, h2_on_sent)
    nghttp2_session_callbacks_set_on_frame_not_send_callback(H2_CALLBACKS, h2_on_not_sent)
    nghttp2_session_callbacks_set_send_data_callback(H2_CALLBACKS, h2_send_body)
    nghttp2_session_callbacks_set_on_stream_close_callback(H2_CALLBACKS, h2_on_stream_close)
    nghttp2_option_set_no_auto_window_update(H2_OPTIONS, 1)
    nghttp2_option_set_max_outbound_ack(H2_OPTIONS, EF_H2_ACKS)
    nghttp2_option_set_max_send_header_block_length(H2_OPTIONS, H2_HEAD)
    nghttp2_option_set_max_settings(H2_OPTIONS, EF_H2_SETTINGS)
    H2_TRAILER_LIMITS.head = H2_TRAILER_LIMITS.line = EF_MAX_TRAILER_BYTES
    H2_TRAILER_LIMITS.count = EF_MAX_TRAILERS
    H2_TRAILER_LIMITS.underscore = EF_UNDERSCORE_ALLOW
    return 0


cdef ef_head_limits H2_TRAILER_LIMITS
