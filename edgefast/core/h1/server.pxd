# Server: an HTTP/1.1 connection of a client.

cdef enum ServerState:
    D_PROXY = 0     # waiting for the PROXY protocol preamble
    D_HEAD = 1      # between requests, or in a head
    D_LENGTH = 2    # in a body with Content-Length
    D_CHUNKED = 3   # in a chunked body
    D_WAIT = 4      # the request is complete, its answer is not
    D_TUNNEL = 5    # after 101
    D_DISCARD = 6   # the last answer is out: read and drop, then close


cdef class H1Responder(Inbound):
    cdef:
        PortTable port
        Exchange exchange
        ServerState state
        uint64_t left           # body bytes still to come
        bint closing            # no request after this one
        bint asked_to_close     # ... because the client said so
        bint wants_continue
        bint chunked_response
        bint takes_trailers     # the client said so (TE)
        uint64_t discarded      # bytes dropped in D_DISCARD

    cdef int linger(self) except -1


cdef class H1Server(H1Responder):
    cdef:
        ef_head *partial        # scan state of a head that came in pieces
        ParserCheck parser_check         # while a body is read
        uint64_t agreed_head    # hash of the last head on which both parsers agreed, or 0
        ef_chunk chunk
        Out trailers            # fields behind the body, until it ends
        bint nominates          # the head's Connection names fields
        uint32_t requests
        bint head_method        # the request in flight is a HEAD

    cdef ssize_t on_head(self, const uint8_t *data, size_t n) except -1
    cdef const uint8_t *add_host(self, const uint8_t *data, ef_head *head) except? NULL
    cdef ssize_t on_chunks(self, const uint8_t *data, size_t n) except -1
    cdef int on_body(self, iovec *iov, int n, size_t total, int64_t left) except -1
    cdef int on_request_end(self) except -1
    cdef int end_trailers(self) except -1
    cdef ssize_t on_preamble(self, const uint8_t *data, size_t n) except -1
    cdef int refuse(self, int status, const char *reason) except -1

cdef H1Server make_server(Engine engine, PortTable port, bint tls)
