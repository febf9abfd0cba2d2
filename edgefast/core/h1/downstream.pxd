# A client's connection: HTTP/1.1, server side.

cdef enum DownState:
    D_PROXY = 0     # waiting for the PROXY protocol preamble
    D_HEAD = 1      # between requests, or in a head
    D_LENGTH = 2    # in a body with Content-Length
    D_CHUNKED = 3   # in a chunked body
    D_WAIT = 4      # the request is complete, its answer is not
    D_TUNNEL = 5    # after 101
    D_DISCARD = 6   # the last answer is out: read and drop, then close


cdef class Responder(Connection):
    cdef:
        PortTable port
        DownState state
        uint64_t left           # body bytes still to come
        bint closing            # no request after this one
        bint asked_to_close     # ... because the client said so
        bint wants_continue
        bint chunked_response
        uint64_t discarded      # bytes dropped in D_DISCARD

    cdef int schedule(self) except -1
    cdef int answer(self, int status, bytes lines, bytes body, Exchange ex, bint is_head) except -1
    cdef int send_continue(self, Exchange ex) except -1
    cdef int response_info(self, const uint8_t *base, ef_head *head) except -1
    cdef int response_head(self, Exchange ex, const uint8_t *base, ef_head *head) except -1
    cdef int response_body(self, const uint8_t *data, size_t n) except -1
    cdef int response_flush(self) except -1
    cdef int response_end(self) except -1
    cdef int response_abort(self) except -1
    cdef int linger(self) except -1
    cdef int partial_done(self) except -1


cdef class Downstream(Responder):
    cdef:
        Exchange exchange
        bytes peer              # text of the client's address, as PROXY protocol or the socket says
        int peer_port           # as the PROXY protocol says; -1: the socket's
        bytes local, remote     # both ends of the socket, "10.0.0.1:80"; None until a log asks
        bytes sni               # lower case; None: plain, or no SNI
        bytes own_lines         # forwarding lines for a request that brings no x-forwarded-for
        bint internal           # the peer is a private address
        ef_chunk chunk
        uint32_t requests
        bint head_method        # the request in flight is a HEAD
        bint processing
        bint scheduled          # _go_on is queued

    cdef ssize_t process(self, const uint8_t *data, size_t n) except -1
    cdef ssize_t on_head(self, const uint8_t *data, size_t n) except -1
    cdef ssize_t on_chunks(self, const uint8_t *data, size_t n) except -1
    cdef int on_request_end(self) except -1
    cdef bint hold_back(self) except -1
    cdef ssize_t on_preamble(self, const uint8_t *data, size_t n) except -1
    cdef int refuse(self, int status, const char *reason) except -1
    cdef int take_address(self, bytes text) except -1
    cdef int exchange_done(self, Exchange ex) except -1
