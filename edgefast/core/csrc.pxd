# What Cython sees of csrc/. The headers are the manual; the names here are theirs.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "head.h" nogil:
    enum:
        EF_BAD
        EF_NEED_MORE
        EF_MAX_HEADERS
        EF_MAX_HEAD
        EF_MAX_TRAILER_BYTES
        EF_MAX_TRAILERS
        EF_H_OTHER
        EF_H_CONNECTION
        EF_H_CONTENT_LENGTH
        EF_H_DATE
        EF_H_EXPECT
        EF_H_HOST
        EF_H_ORIGIN
        EF_H_SERVER
        EF_H_TRANSFER_ENCODING
        EF_H_UPGRADE
        EF_H_VIA
        EF_H_X_EDGE
        EF_H_X_FORWARDED_FOR
        EF_H_X_FORWARDED_PROTO
        EF_H_FORWARDING
        EF_H_X_REQUEST_ID
        EF_H_ACCESS_CONTROL_REQUEST_METHOD
        EF_SPAN_HOP
        EF_SPAN_NOMINATED
        EF_SPAN_UNDERSCORE
        EF_BODY_NONE
        EF_BODY_LENGTH
        EF_BODY_CHUNKED
        EF_BODY_EOF
        EF_M_CONNECT
        EF_M_DELETE
        EF_M_GET
        EF_M_UNKNOWN
        EF_M_HEAD
        EF_M_OPTIONS
        EF_M_PATCH
        EF_M_POST
        EF_M_PUT
        EF_M_TRACE
        EF_E_NONE
        EF_E_COUNT
        EF_UNDERSCORE_REJECT
        EF_UNDERSCORE_ALLOW
        EF_UNDERSCORE_DROP
        EF_RAW_REJECT
        EF_RAW_ALLOW
        EF_HTTP10_REJECT
        EF_HTTP10_WITH_HOST
        EF_HTTP10_ALLOW
        EF_HOST_LINE
        EF_NOTE_PARAMETERS
        EF_NOTE_RAW
        EF_NOTE_HOST_DOT

    ctypedef struct ef_span:
        uint32_t name_off
        uint32_t val_off
        uint32_t val_len
        uint32_t line_end
        uint32_t name_hash
        uint16_t name_len
        uint8_t id
        uint8_t flags

    ctypedef struct ef_head_limits:
        uint32_t head
        uint32_t line
        uint32_t count
        uint32_t underscore
        uint32_t raw
        uint32_t http10

    ctypedef struct ef_head:
        uint32_t head_len
        int32_t error
        int32_t status
        uint32_t method_off
        uint32_t method_len
        uint32_t target_off
        uint32_t target_len
        uint32_t path_len
        uint32_t host_off
        uint32_t host_len
        uint32_t authority_off
        uint32_t authority_len
        uint32_t host_port
        uint64_t content_length
        uint16_t response_status
        uint16_t n_spans
        uint16_t version_minor
        uint8_t method
        uint8_t body
        uint8_t keep_alive
        uint8_t upgrade
        uint8_t expect_continue
        uint8_t has_date
        uint8_t has_server
        uint8_t absolute_scheme
        uint8_t target_empty_path
        uint8_t te_trailers
        uint8_t nominates
        uint8_t grpc
        uint8_t notes
        ef_span spans[128]

    void ef_head_reset(ef_head *head)
    int ef_head_scan_request(ef_head *head, const ef_head_limits *limits, const uint8_t *buf, size_t len)
    int ef_head_scan_response(ef_head *head, const ef_head_limits *limits, const uint8_t *buf, size_t len,
                              unsigned request_method)
    void ef_head_drop_host_dot(ef_head *head, uint8_t *buf)
    size_t ef_head_add_host(const ef_head *head, const uint8_t *buf, const uint8_t *host, size_t len, uint8_t *out)
    uint32_t ef_name_hash(const uint8_t *name, size_t len)
    const char *ef_head_error_text(int error)
    const char *ef_head_error_name(int error)
    const char *ef_method_name(unsigned method)
    unsigned ef_method_lookup(const uint8_t *text, size_t len)
    int ef_list_has(const uint8_t *value, size_t len, const char *token)


cdef extern from "chunk.h" nogil:
    enum:
        EF_CHUNK_DATA
        EF_CHUNK_DONE
        EF_CHUNK_TRAILER
        EF_CE_COUNT

    ctypedef struct ef_chunk:
        uint64_t left
        uint8_t error

    void ef_chunk_reset(ef_chunk *chunk)
    int ef_chunk_feed(ef_chunk *chunk, const uint8_t *buf, size_t len, size_t *used, const uint8_t **data,
                      size_t *data_len)
    int ef_chunk_in_trailers(const ef_chunk *chunk)
    const char *ef_chunk_error_text(int error)


cdef extern from "trailer.h" nogil:
    size_t ef_trailer_next(const uint8_t *lines, size_t len, size_t at, ef_span *span)


cdef extern from "path.h" nogil:
    enum:
        EF_PATH_SAME
        EF_PATH_WRITTEN

    int ef_path_normalize(const uint8_t *path, size_t len, uint8_t *out, size_t out_cap, size_t *out_len,
                          int *escaped_slash)
    int ef_path_unescape_slashes(const uint8_t *path, size_t len, uint8_t *out, size_t out_cap, size_t *out_len)
    size_t ef_path_strip_parameters(uint8_t *path, size_t len, size_t start)
    long ef_path_encode_raw(const uint8_t *path, size_t len, uint8_t *out, size_t out_cap)


cdef extern from "table.h" nogil:
    enum:
        EF_PATH_EXACT
        EF_PATH_PREFIX
        EF_PATH_REGEX

    ctypedef struct ef_blob:
        pass

    int ef_table_check(const uint8_t *data, size_t len)
    uint32_t ef_blob_rules(const ef_blob *blob)
    uint32_t ef_blob_entries(const ef_blob *blob)
    uint32_t ef_blob_fragments(const ef_blob *blob)
    uint32_t ef_blob_fragment_index(const ef_blob *blob)
    const uint8_t *ef_blob_key(const ef_blob *blob, size_t *len)
    const uint8_t *ef_blob_rule(const ef_blob *blob, uint32_t rule, size_t *len)
    const uint8_t *ef_blob_regex(const ef_blob *blob, uint32_t candidate, size_t *len)


cdef extern from "route.h" nogil:
    ctypedef struct ef_vhost:
        const ef_blob *root
        const ef_blob **fragments
        uint32_t n_fragments

    ctypedef struct ef_request:
        const uint8_t *path
        size_t path_len
        const uint8_t *query
        size_t query_len
        uint32_t method
        uint32_t n_spans
        const uint8_t *base
        const ef_span *spans

    ctypedef struct ef_hit:
        const ef_blob *blob
        uint32_t rule
        uint32_t candidate
        uint32_t prefix_len
        uint8_t kind
        uint8_t regex_path
        uint8_t regex_preds

    ctypedef struct ef_route:
        pass

    ctypedef struct ef_regex_pred:
        const uint8_t *name
        size_t name_len
        const uint8_t *pattern
        size_t pattern_len
        int is_query
        int is_cookie

    void ef_route_begin(ef_route *it, const ef_vhost *vhost, const ef_request *request)
    int ef_route_next(ef_route *it, ef_hit *hit)
    int ef_route_pred(const ef_hit *hit, uint32_t i, ef_regex_pred *out)
    int ef_request_header(const ef_request *request, const uint8_t *name, size_t name_len, uint8_t *scratch, size_t cap,
                          const uint8_t **value, size_t *len)
    int ef_request_cookie(const ef_request *request, const uint8_t *name, size_t name_len, uint64_t *at,
                          const uint8_t **value, size_t *len)
    int ef_request_query(const ef_request *request, const uint8_t *name, size_t name_len, uint8_t *scratch, size_t cap,
                         const uint8_t **value, size_t *len)


cdef extern from "single_path.h" nogil:
    ctypedef struct ef_single_path:
        uint8_t holds

    int ef_single_path_read(const ef_blob *root, ef_single_path *single)
    int ef_single_path_match(const ef_single_path *single, const ef_blob *root, const ef_request *request, ef_hit *hit)


cdef extern from "map.h" nogil:
    ctypedef struct ef_map:
        size_t used

    int ef_map_init(ef_map *m, size_t expected)
    void ef_map_free(ef_map *m)
    int ef_map_put(ef_map *m, uint64_t key, uint64_t value, uint64_t *old)
    int ef_map_get(const ef_map *m, uint64_t key, uint64_t *value)
    int ef_map_del(ef_map *m, uint64_t key, uint64_t *old)
    void ef_map_prefetch(const ef_map *m, uint64_t key)
    int ef_map_next(const ef_map *m, size_t *cursor, uint64_t *key, uint64_t *value)
    uint64_t ef_hash64(uint64_t seed, const uint8_t *data, size_t len, int fold)


cdef extern from "siphash.h" nogil:
    enum:
        EF_SIPHASH_SEED
    uint64_t ef_siphash13(const uint8_t *seed, const uint8_t *data, size_t len)


cdef extern from "stat.h" nogil:
    enum:
        EF_STAT_CELLS
        EF_STAT_GLOBALS

    ctypedef struct ef_stat_row:
        uint8_t label[184]
        uint64_t cells[48]

    ctypedef struct ef_stat:
        uint32_t max_rows
        uint64_t globals[128]

    int ef_stat_check(const void *mem, size_t len)
    void ef_stat_adopt(ef_stat *s)
    ef_stat_row *ef_stat_hold(ef_stat *s, const uint8_t *label, size_t len)
    void ef_stat_release(ef_stat_row *row)
    int ef_stat_forget(ef_stat *s, const uint8_t *label, size_t len)
    void ef_stat_add(uint64_t *cell, uint64_t n)
    void ef_stat_sub(uint64_t *cell, uint64_t n)
    unsigned ef_stat_bucket(uint64_t microseconds)


cdef extern from "<sys/uio.h>" nogil:
    struct iovec:
        void *iov_base
        size_t iov_len


cdef extern from "<sys/socket.h>" nogil:
    enum:
        MSG_MORE
        MSG_NOSIGNAL
        MSG_DONTWAIT
        MSG_PEEK

    struct msghdr:
        iovec *msg_iov
        size_t msg_iovlen

    ssize_t send(int fd, const void *buf, size_t len, int flags)
    ssize_t sendmsg(int fd, const msghdr *msg, int flags)
    enum:
        SHUT_WR
        AF_INET
        AF_INET6

    ctypedef unsigned int socklen_t

    struct sockaddr:
        unsigned short sa_family

    struct sockaddr_storage:
        unsigned short ss_family

    enum:
        SOL_SOCKET
        SO_SNDBUF

    int getsockopt(int fd, int level, int name, void *value, socklen_t *length)
    int getsockname(int fd, sockaddr *address, socklen_t *length)
    int getpeername(int fd, sockaddr *address, socklen_t *length)
    int shutdown(int fd, int how)
    ssize_t recv(int fd, void *buf, size_t len, int flags)


cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    enum:
        CLOCK_BOOTTIME
        CLOCK_MONOTONIC
        CLOCK_REALTIME
    int clock_gettime(int clock, timespec *ts)


cdef extern from "<arpa/inet.h>" nogil:
    struct in_addr:
        pass
    struct in6_addr:
        pass
    struct sockaddr_in:
        in_addr sin_addr
        uint16_t sin_port
    struct sockaddr_in6:
        in6_addr sin6_addr
        uint16_t sin6_port
        uint32_t sin6_scope_id
    const char *inet_ntop(int family, const void *source, char *to, socklen_t size)
    uint16_t ntohs(uint16_t number)
    int inet_pton(int family, const char *source, void *to)


cdef extern from "<sys/ioctl.h>" nogil:
    int ioctl(int fd, unsigned long request, ...)


cdef extern from "<linux/sockios.h>" nogil:
    enum:
        SIOCOUTQ


cdef extern from "ticket.h" nogil:
    enum:
        EF_TICKET_NAME
        EF_TICKET_KEY
        EF_TICKET_RULE
        EF_TICKET_LIFETIME
        EF_TICKET_UNKNOWN
        EF_TICKET_USE
        EF_TICKET_RENEW
    ctypedef struct ef_ticket_ring:
        pass
    ctypedef struct ef_ticket_key:
        uint8_t name[16]
        uint8_t aes[32]
        uint8_t hmac[32]
    ctypedef struct ef_ticket_rule:
        pass
    ctypedef int (*ef_ticket_hmac)(const uint8_t *key, const uint8_t *data, size_t length, uint8_t *out) noexcept nogil
    int ef_ticket_check(const void *mem, size_t length)
    void ef_ticket_wipe(void *mem, size_t length)
    void ef_ticket_rule_init(ef_ticket_rule *rule, const uint8_t *digest, ef_ticket_hmac hmac)
    void ef_ticket_rule_wipe(ef_ticket_rule *rule)
    int ef_ticket_encrypt_key(const ef_ticket_ring *ring, ef_ticket_rule *rule, uint64_t now, ef_ticket_key *out)
    int ef_ticket_decrypt_key(const ef_ticket_ring *ring, ef_ticket_rule *rule, const uint8_t *name, uint64_t now,
                              ef_ticket_key *out)


cdef extern from "crc32.h" nogil:
    uint32_t ef_crc32(const uint8_t *data, size_t len)


cdef extern from "limit_store.h" nogil:
    enum:
        EF_STORE_SHARE

    ctypedef struct ef_store:
        pass

    ctypedef struct ef_limit_result:
        uint32_t admitted, remaining
        uint64_t reset_ms, window

    ctypedef struct ef_limit:
        pass

    ctypedef struct ef_held:
        uint32_t sum

    ef_limit *ef_store_tokens(ef_store *store)
    size_t ef_local_size(uint32_t buckets)
    int ef_local_init(void *mem, size_t len, uint32_t buckets, const uint8_t *seed)
    int ef_local_check(const void *mem, size_t len)
    uint64_t ef_bucket_time(uint64_t us)
    int ef_bucket_take(ef_limit *s, const uint8_t *key, size_t key_len, size_t name_len, uint64_t interval, uint32_t burst,
                       uint64_t now, ef_limit_result *out)
    void ef_bucket_give_back(ef_limit *s, const uint8_t *key, size_t key_len, size_t name_len, uint64_t interval)
    int ef_held_take(ef_limit *s, const uint8_t *key, size_t key_len, uint32_t seat, uint32_t seats, uint32_t most,
                     uint32_t now_s, ef_held *out)
    void ef_held_release(ef_held *held, uint32_t now_s)
    void ef_held_forget(ef_limit *s, uint32_t seat, uint32_t now_s)

    int ef_store_check(const void *mem, size_t len)
    uint64_t ef_store_now(const ef_store *store, uint64_t boot_ms)
    int ef_store_take(ef_store *store, const uint8_t *key, size_t key_len, size_t name_len, uint32_t n, uint32_t limit,
                      uint32_t unit, int sliding, uint64_t now_ms, ef_limit_result *out)


cdef extern from *:
    void prefetch "__builtin_prefetch" (const void *address) noexcept nogil
