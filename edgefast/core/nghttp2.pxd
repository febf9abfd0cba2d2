# What Cython sees of libnghttp2: a session that reads and writes frames, without sockets.

from libc.stdint cimport int32_t, uint8_t, uint32_t

cdef extern from "nghttp2/nghttp2.h":
    enum:
        NGHTTP2_FLAG_NONE
        NGHTTP2_FLAG_END_STREAM
        NGHTTP2_FLAG_ACK
        NGHTTP2_DATA
        NGHTTP2_HEADERS
        NGHTTP2_RST_STREAM
        NGHTTP2_SETTINGS
        NGHTTP2_PING
        NGHTTP2_GOAWAY
        NGHTTP2_HCAT_REQUEST
        NGHTTP2_HCAT_HEADERS
        NGHTTP2_SETTINGS_ENABLE_PUSH
        NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS
        NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE
        NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE
        NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL
        NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES
        NGHTTP2_EXTPRI_DEFAULT_URGENCY
        NGHTTP2_NO_ERROR
        NGHTTP2_PROTOCOL_ERROR
        NGHTTP2_INTERNAL_ERROR
        NGHTTP2_SETTINGS_TIMEOUT
        NGHTTP2_REFUSED_STREAM
        NGHTTP2_CANCEL
        NGHTTP2_ENHANCE_YOUR_CALM
        NGHTTP2_DATA_FLAG_EOF
        NGHTTP2_DATA_FLAG_NO_END_STREAM
        NGHTTP2_DATA_FLAG_NO_COPY
        NGHTTP2_ERR_WOULDBLOCK
        NGHTTP2_ERR_DEFERRED
        NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE
        NGHTTP2_ERR_CALLBACK_FAILURE
        NGHTTP2_ERR_REFUSED_STREAM
        NGHTTP2_ERR_BAD_CLIENT_MAGIC

    ctypedef struct nghttp2_session:
        pass
    ctypedef struct nghttp2_session_callbacks:
        pass
    ctypedef struct nghttp2_option:
        pass
    ctypedef struct nghttp2_frame_hd:
        size_t length
        int32_t stream_id
        uint8_t type
        uint8_t flags
    ctypedef struct nghttp2_headers:
        nghttp2_frame_hd hd
        int cat
    ctypedef struct nghttp2_rst_stream:
        nghttp2_frame_hd hd
        uint32_t error_code
    ctypedef union nghttp2_frame:
        nghttp2_frame_hd hd
        nghttp2_headers headers
        nghttp2_rst_stream rst_stream
    ctypedef struct nghttp2_nv:
        pass
    ctypedef struct nghttp2_extpri:
        uint32_t urgency
        int inc
    ctypedef struct nghttp2_settings_entry:
        int32_t settings_id
        uint32_t value
    ctypedef union nghttp2_data_source:
        int fd
        void *ptr
    ctypedef ssize_t (*nghttp2_data_source_read_callback)(
        nghttp2_session *, int32_t, uint8_t *, size_t, uint32_t *, nghttp2_data_source *, void *) noexcept
    ctypedef struct nghttp2_data_provider:
        nghttp2_data_source source
        nghttp2_data_source_read_callback read_callback

    int nghttp2_session_callbacks_new(nghttp2_session_callbacks **)
    void nghttp2_session_callbacks_set_on_begin_frame_callback(
        nghttp2_session_callbacks *, int (*)(nghttp2_session *, const nghttp2_frame_hd *, void *) noexcept)
    void nghttp2_session_callbacks_set_on_begin_headers_callback(
        nghttp2_session_callbacks *, int (*)(nghttp2_session *, const nghttp2_frame *, void *) noexcept)
    void nghttp2_session_callbacks_set_on_header_callback(
        nghttp2_session_callbacks *, int (*)(nghttp2_session *, const nghttp2_frame *, const uint8_t *, size_t, const uint8_t *, size_t,
                                             uint8_t, void *) noexcept)
    void nghttp2_session_callbacks_set_on_invalid_header_callback(
        nghttp2_session_callbacks *, int (*)(nghttp2_session *, const nghttp2_frame *, const uint8_t *, size_t, const uint8_t *, size_t,
                                             uint8_t, void *) noexcept)
    void nghttp2_session_callbacks_set_on_frame_recv_callback(
        nghttp2_session_callbacks *, int (*)(nghttp2_session *, const nghttp2_frame *, void *) noexcept)
    void nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(
        nghttp2_session_callbacks *, int (*)(nghttp2_session *, const nghttp2_frame *, int, void *) noexcept)
    void nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        nghttp2_session_callbacks *, int (*)(nghttp2_session *, uint8_t, int32_t, const uint8_t *, size_t, void *) noexcept)
    void nghttp2_session_callbacks_set_on_frame_send_callback(
        nghttp2_session_callbacks *, int (*)(nghttp2_session *, const nghttp2_frame *, void *) noexcept)
    void nghttp2_session_callbacks_set_on_frame_not_send_callback(
        nghttp2_session_callbacks *, int (*)(nghttp2_session *, const nghttp2_frame *, int, void *) noexcept)
    void nghttp2_session_callbacks_set_send_data_callback(
        nghttp2_session_callbacks *, int (*)(nghttp2_session *, nghttp2_frame *, const uint8_t *, size_t, nghttp2_data_source *,
                                             void *) noexcept)
    void nghttp2_session_callbacks_set_on_stream_close_callback(
        nghttp2_session_callbacks *, int (*)(nghttp2_session *, int32_t, uint32_t, void *) noexcept)

    int nghttp2_option_new(nghttp2_option **)
    void nghttp2_option_set_no_auto_window_update(nghttp2_option *, int)
    void nghttp2_option_set_max_outbound_ack(nghttp2_option *, size_t)
    void nghttp2_option_set_max_send_header_block_length(nghttp2_option *, size_t)
    void nghttp2_option_set_max_settings(nghttp2_option *, size_t)

    int nghttp2_session_change_extpri_stream_priority(nghttp2_session *, int32_t, const nghttp2_extpri *, int)
    int nghttp2_session_client_new2(nghttp2_session **, const nghttp2_session_callbacks *, void *, const nghttp2_option *)
    uint32_t nghttp2_session_get_remote_settings(nghttp2_session *, int)
    int nghttp2_session_consume_stream(nghttp2_session *, int32_t, size_t)
    int32_t nghttp2_submit_request(nghttp2_session *, const void *, const nghttp2_nv *, size_t, const nghttp2_data_provider *, void *)
    int nghttp2_session_server_new2(nghttp2_session **, const nghttp2_session_callbacks *, void *, const nghttp2_option *)
    void nghttp2_session_del(nghttp2_session *)
    ssize_t nghttp2_session_mem_recv(nghttp2_session *, const uint8_t *, size_t)
    ssize_t nghttp2_session_mem_send(nghttp2_session *, const uint8_t **)
    int nghttp2_session_want_read(nghttp2_session *)
    int nghttp2_session_want_write(nghttp2_session *)
    size_t nghttp2_session_get_outbound_queue_size(nghttp2_session *)
    int nghttp2_session_resume_data(nghttp2_session *, int32_t)
    void *nghttp2_session_find_stream(nghttp2_session *, int32_t)
    void *nghttp2_session_get_stream_user_data(nghttp2_session *, int32_t)
    int nghttp2_session_set_stream_user_data(nghttp2_session *, int32_t, void *)
    int nghttp2_session_terminate_session(nghttp2_session *, uint32_t)
    int nghttp2_submit_shutdown_notice(nghttp2_session *)
    int32_t nghttp2_session_get_last_proc_stream_id(nghttp2_session *)
    int nghttp2_session_consume(nghttp2_session *, int32_t, size_t)
    int nghttp2_session_consume_connection(nghttp2_session *, size_t)
    int nghttp2_session_set_local_window_size(nghttp2_session *, uint8_t, int32_t, int32_t)
    int nghttp2_submit_settings(nghttp2_session *, uint8_t, const nghttp2_settings_entry *, size_t)
    int nghttp2_submit_response(nghttp2_session *, int32_t, const nghttp2_nv *, size_t, const nghttp2_data_provider *)
    int32_t nghttp2_submit_headers(nghttp2_session *, uint8_t, int32_t, const void *, const nghttp2_nv *, size_t, void *)
    int nghttp2_submit_trailer(nghttp2_session *, int32_t, const nghttp2_nv *, size_t)
    int nghttp2_submit_rst_stream(nghttp2_session *, uint8_t, int32_t, uint32_t)
    int nghttp2_submit_goaway(nghttp2_session *, uint8_t, int32_t, uint32_t, const uint8_t *, size_t)
    int nghttp2_submit_ping(nghttp2_session *, uint8_t, const uint8_t *)
