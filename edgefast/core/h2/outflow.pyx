# Outflow: the unsent data of an HTTP/2 stream: nghttp2 takes it as the peer's windows allow.
#
# In: bytes and trailers that wait in an H2Outflow, and whether more is to come.
# Out: DATA frames in engine.h2_out, behind earlier frames, and the trailers. It reports the bytes taken (H2Frames.took) and ends nothing.

cdef nghttp2_data_provider H2_BODY


cdef inline H2Outflow *h2_outflow(nghttp2_session *frames, int32_t id) noexcept:
    """NULL: nobody has anything to do with that stream any more."""
    return <H2Outflow *>nghttp2_session_get_stream_user_data(frames, id)


cdef void h2_outflow_free(H2Outflow *out) noexcept:
    queue_free(&out.queue)
    free(out.trailers.data)


cdef ssize_t h2_read_body(
    nghttp2_session *frames, int32_t id, uint8_t *buffer, size_t room, uint32_t *flags, nghttp2_data_source *source, void *user
) noexcept:
    """How much of a body there is; h2_send_body takes it."""
    cdef H2Outflow *out = h2_outflow(frames, id)
    cdef Engine engine = (<H2Frames>user).engine
    cdef int n
    cdef size_t here
    if out == NULL:
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE
    here = out.queue.len if out.queue.len < room else room
    if here == out.queue.len and out.ended:
        flags[0] |= NGHTTP2_DATA_FLAG_EOF
        if out.trailers.size:
            n = ef_h2_lines_trailers(out.trailers.data, out.trailers.size, engine.h2_pairs, H2_PAIRS)
            if n > 0:
                flags[0] |= NGHTTP2_DATA_FLAG_NO_END_STREAM
                nghttp2_submit_trailer(frames, id, <const nghttp2_nv *>engine.h2_pairs, n)
            out.trailers.size = 0
    elif here == 0:
        out.deferred = True
        return NGHTTP2_ERR_DEFERRED
    flags[0] |= NGHTTP2_DATA_FLAG_NO_COPY
    return here


cdef int h2_send_body(
    nghttp2_session *frames, nghttp2_frame *frame, const uint8_t *head, size_t n, nghttp2_data_source *source, void *user
) noexcept:
    cdef H2Frames session = <H2Frames>user
    cdef Out *to = &session.engine.h2_out
    cdef H2Outflow *out
    if to.size >= H2_SEND:
        return NGHTTP2_ERR_WOULDBLOCK
    try:
        out = h2_outflow(frames, frame.hd.stream_id)
        if out == NULL or out.queue.len < n:
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE
        out_reserve(to, n + 9)
        out_raw(to, head, 9)
        if n:
            out_raw(to, out.queue.data + out.queue.at, n)
            session.took(out.stream, n)
    except BaseException as error:
        return h2_fault(session, error)
    return 0
