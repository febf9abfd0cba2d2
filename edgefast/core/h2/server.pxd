# Server: an HTTP/2 connection of a client, and its streams.

cdef class H2Responder(Inbound):
    cdef:
        H2Server session        # None: the stream is closed
        Exchange exchange
        int32_t id
        H2Outflow out           # the response's body, as far as the client has not taken it
        size_t heads            # bytes of heads that are not sent yet
        size_t counted          # bytes of memory that the session and the engine know of
        size_t unconsumed       # bytes of the request's body that the client's window is not told of yet
        int64_t reads_until     # ms; what the client has taken of the queue, or of an end, is enough until then (answerRate)
        int64_t end_by          # ms; the answer is sent, and the client must end its half before this time; 0: no deadline
        size_t dropped          # bytes of the request's body that came after the exchange had ended
        int64_t left            # body bytes still to come; -1: nobody knows
        bytes key               # Sec-WebSocket-Key of a tunnel; None: no tunnel asked for
        bint tunnel             # the backend has agreed
        bint request_over       # the client has said END_STREAM
        bint answered           # the head of the final answer is out
        bint wants_continue
        bint read_paused
        bint is_head
        bint surplus            # the worker has too many open: it is refused when its head is here, and counts as none
        bint is_reset           # we have said so, or nghttp2 has; it closes when that is sent

    cdef int begin_answer(self, Out *out, bint has_body) except -1
    cdef int submit_response(self, Out *out) except -1
    cdef int more(self) except -1
    cdef void wait_for_window(self) noexcept
    cdef void await_end(self, int64_t wait) noexcept
    cdef int reset(self, uint32_t code) except -1
    cdef int refuse(self, int status, bytes reason, bytes why) except -1
    cdef void look_at_room(self) noexcept
    cdef void took(self, size_t n) noexcept
    cdef void recount(self) noexcept
    cdef size_t asked(self) noexcept
    cdef bint accepts(self, const uint8_t *base, ef_head *head) except -1


cdef class H2Stream(H2Responder):
    cdef int begin(self, const uint8_t *base, ef_head *head, bint ends) except -1
    cdef int body(self, const uint8_t *data, size_t n) except -1
    cdef int end(self) except -1
    cdef int close(self) except -1
    cdef int new_cookies(self) except -1
    cdef int give_up(self, uint32_t code) except -1
    cdef void drop_queue(self) noexcept


cdef class H2Server(H2Frames):
    cdef:
        PortTable port
        list touched            # streams that the bytes being read are about
        size_t held             # bytes of memory for its requests, and for answers that are not taken yet
        size_t queued           # of these, in the connection's own queue
        size_t late             # of these, in streams that are behind, as of the last look
        size_t fresh            # ... and in those that are not, and whose client has taken nothing to speak of
        H2ClientUsage holder         # who shares that with its other connections
        int32_t last            # the largest number of a stream that the client has used
        bint skips              # it has passed some over
        bint off_order          # ... and come back to one of them
        uint32_t requests
        bint discarding         # the last word is out: read and drop, then close
        uint64_t discarded
        int64_t last_by         # ms: the second GOAWAY of a drain; 0: none

    cdef int take_over(self, Connection connection) except -1
    cdef int flush(self) except -1
    cdef int on_block(self, int32_t id, bint ends) except -1
    cdef int calm(self, int breach) except -1
    cdef int terminate(self, uint32_t code) except -1
    cdef int shutdown(self) except -1
    cdef int over(self) except -1
    cdef int release_streams(self) except -1
    cdef int rearm(self) except -1
