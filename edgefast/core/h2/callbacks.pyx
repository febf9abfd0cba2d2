# Callbacks: nghttp2 callbacks for both sides, from C to the session. servercallbacks.pyx and clientcallbacks.pyx have the rest.
#
# A callback must not raise: its exception is stored, and costs the connection when nghttp2 has returned. It may submit frames, never read
# or send them.

cdef nghttp2_session_callbacks *H2_SERVER_CALLBACKS = NULL
cdef nghttp2_session_callbacks *H2_CLIENT_CALLBACKS = NULL
cdef nghttp2_option *H2_OPTIONS = NULL
cdef ef_head_limits H2_TRAILER_LIMITS
cdef nghttp2_extpri H2_EQUAL  # how streams share a connection: a frame each in turn


cdef int h2_fault(H2Frames session, object error) noexcept:
    session.fault = error
    return NGHTTP2_ERR_CALLBACK_FAILURE


cdef int h2_on_begin_headers(nghttp2_session *frames, const nghttp2_frame *frame, void *user) noexcept:
    cdef H2Frames session = <H2Frames>user
    try:
        if frame.hd.type == NGHTTP2_HEADERS:
            session.on_begin_block(frame.hd.stream_id, frame.headers.cat == NGHTTP2_HCAT_REQUEST)
    except BaseException as error:
        return h2_fault(session, error)
    return 0


cdef int h2_on_header(
    nghttp2_session *frames, const nghttp2_frame *frame, const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len,
    uint8_t flags, void *user
) noexcept:
    cdef H2Frames session = <H2Frames>user
    if session.block != frame.hd.stream_id:
        return 0
    if ef_h2_text_field(&session.text, session.limits(), name, name_len, value, value_len) == EF_H2_CLOSE:
        session.breach = EF_H2_B_HEAD
        return NGHTTP2_ERR_CALLBACK_FAILURE
    return 0


cdef int h2_on_invalid_header(
    nghttp2_session *frames, const nghttp2_frame *frame, const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len,
    uint8_t flags, void *user
) noexcept:
    """It would leave this field out and go on."""
    (<H2Frames>user).is_malformed = True
    return h2_on_header(frames, frame, name, name_len, value, value_len, flags, user)


cdef int h2_on_stream_close(nghttp2_session *frames, int32_t id, uint32_t code, void *user) noexcept:
    cdef H2Frames session = <H2Frames>user
    try:
        nghttp2_session_set_stream_user_data(frames, id, NULL)
        if session.block == id:
            session.block = 0
            session.block_by = 0
        session.on_stream_over(id, code)
    except BaseException as error:
        return h2_fault(session, error)
    return 0


cdef nghttp2_session_callbacks *h2_new_callbacks() except NULL:
    cdef nghttp2_session_callbacks *made
    if nghttp2_session_callbacks_new(&made) < 0:
        raise MemoryError
    nghttp2_session_callbacks_set_on_begin_headers_callback(made, h2_on_begin_headers)
    nghttp2_session_callbacks_set_on_header_callback(made, h2_on_header)
    nghttp2_session_callbacks_set_on_invalid_header_callback(made, h2_on_invalid_header)
    nghttp2_session_callbacks_set_send_data_callback(made, h2_send_body)
    nghttp2_session_callbacks_set_on_stream_close_callback(made, h2_on_stream_close)
    return made


cdef int h2_prepare() except -1:
    """Once: what all sessions have in common."""
    global H2_SERVER_CALLBACKS, H2_CLIENT_CALLBACKS, H2_OPTIONS
    if H2_OPTIONS != NULL:
        return 0
    H2_SERVER_CALLBACKS = h2_new_callbacks()
    h2_add_server_callbacks(H2_SERVER_CALLBACKS)
    H2_CLIENT_CALLBACKS = h2_new_callbacks()
    h2_add_client_callbacks(H2_CLIENT_CALLBACKS)
    H2_BODY.source.ptr = NULL
    H2_BODY.read_callback = h2_read_body
    H2_EQUAL.urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY
    H2_EQUAL.inc = 1
    H2_TRAILER_LIMITS.head = H2_TRAILER_LIMITS.line = EF_MAX_TRAILER_BYTES
    H2_TRAILER_LIMITS.count = EF_MAX_TRAILERS
    H2_TRAILER_LIMITS.underscore = EF_UNDERSCORE_ALLOW
    if nghttp2_option_new(&H2_OPTIONS) < 0:
        raise MemoryError
    nghttp2_option_set_no_auto_window_update(H2_OPTIONS, 1)
    nghttp2_option_set_max_outbound_ack(H2_OPTIONS, EF_H2_ACKS)
    nghttp2_option_set_max_send_header_block_length(H2_OPTIONS, H2_HEAD)
    nghttp2_option_set_max_settings(H2_OPTIONS, EF_H2_SETTINGS)
    return 0
