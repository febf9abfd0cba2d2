# Client: an HTTP/1.1 connection to a backend.

cdef enum ClientState:
    U_IDLE = 0      # in the pool, or handed out and nothing sent yet
    U_HEAD = 1      # waiting for (more of) a response head
    U_LENGTH = 2
    U_CHUNKED = 3
    U_EOF = 4       # body until the connection ends
    U_TUNNEL = 5    # after 101


cdef class H1Requester(Outbound):
    cdef:
        bint unsized            # the body is sent in chunks
        bytes asked             # the protocols it would switch to; None: none
        uint64_t owed           # of a body with a length: bytes that are still to be written
        bint request_done       # the whole request was written

    cdef int end_head(self, Out *head) except -1


cdef class H1Client(H1Requester):
    cdef:
        Cluster cluster
        ClientState state
        unsigned method         # of the request in flight, enum ef_method
        ef_head *partial        # scan state of a head that came in pieces
        ParserCheck parser_check         # while a body is read
        uint64_t agreed_head    # hash of the last head on which both parsers agreed, or 0
        uint32_t informational  # 1xx of this response
        uint64_t left           # body bytes still to come
        ef_chunk chunk
        Out trailers            # fields behind the body, until it ends
        object tls          # what it was made with; None: plain
        str sni
        bytes local             # "10.0.0.1:40000", our end; None: no log line has asked for it
        int64_t idle_ms         # how long it may wait in the pool
        bint opened             # its connection has been there
        bint keep_alive
        bint nominates          # its head's Connection names fields

    cdef ssize_t on_head(self, const uint8_t *data, size_t n) except -1
    cdef int end_trailers(self, UpstreamUser user) except -1
    cdef int finish(self, size_t extra) except -1
    cdef int fail(self, int why) except -1
