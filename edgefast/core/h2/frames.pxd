# Frames: an HTTP/2 connection of either side: frames in, frames out.

cdef class H2Frames(MultiplexedSession):
    cdef:
        Engine engine
        nghttp2_session *frames
        dict streams            # id -> H2Stream, H2Call
        list woken              # those that may go on once what is being sent is sent
        ef_h2_guard guard
        ef_h2_text text         # of the block that is being read
        Out partial             # what there is of it, when it comes in several reads
        int32_t block           # the stream of the block that is being read; 0: none
        bint is_malformed       # nghttp2 refuses a field of it
        bint is_trailer         # it is of trailers
        int breach              # enum ef_h2_breach that was found where nothing can be done about it
        object fault            # what a callback raised
        bint busy               # in nghttp2
        # deadlines, ms; 0: none
        int64_t ack_by, block_by, idle_by, ping_at, ping_by, look_at
        int64_t write_by        # the socket has to have taken something
        size_t unsent           # bytes that waited for it when it was looked at last
        int64_t heard           # when bytes last came

    cdef int prepare(self) except -1
    cdef ssize_t feed(self, const uint8_t *data, size_t n) except -1
    cdef void begin_block(self, int32_t id, ef_h2_kind kind, bint tls) noexcept
    cdef int keep_block(self, int64_t patience) except -1
    cdef bint gather(self) except -1
    cdef int mark(self) except -1
    cdef int more(self, H2Outflow *out, int32_t id) except -1
    cdef void ping(self, int64_t now) noexcept
    cdef void watch_writes(self, int64_t now, int64_t patience) noexcept
    cdef void ping_silent(self, int64_t now, int64_t every, bint wanted) noexcept
    cdef int arm_first(self, int64_t other) except -1
    # what each side does about it
    cdef const ef_head_limits *limits(self) noexcept
    cdef int on_begin_block(self, int32_t id, bint begins) except -1
    cdef int took(self, void *stream, size_t n) except -1
    cdef int on_stream_over(self, int32_t id, uint32_t code) except -1
