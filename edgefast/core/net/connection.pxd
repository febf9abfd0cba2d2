# Connection: one connection of any protocol.

cdef enum BodyEnd:
    BODY_FRAMED = 0     # nothing: a message has its own end
    BODY_RUNS = 1       # that a body which goes on is complete
    BODY_GIVEN = 2      # that a body is complete, which it is as soon as all bytes are sent


cdef class Connection(Outgoing):
    cdef:
        ConnectCallback connect_callback           # who waits for it to be open; None: nobody
        NetAddress peer
        uint64_t *counted       # the counter of bytes that come; NULL: none
        int64_t open_by         # WIRE_OPENING: ms of the wheel; 0: never
        bint opened             # the session has heard of it
        bint closed             # WIRE_CLOSING or WIRE_OVER
        bint read_paused        # by the session
        bint more               # the wire may hold bytes that no event tells of
        bint bulk               # the last read filled what it was given: a long body
        bint rests              # it is read again in a turn to come
        bint again              # `received` follows for what is pending
        bint calls_session      # on_turn_end is the session's wish
        BodyEnd body_end        # what an orderly end would tell the peer
        ByteQueue pending       # bytes received and not consumed

    # life
    cdef int start(self, Reactor reactor, int fd, Session session, Watched before) except -1
    cdef int shut(self, bint abort) except -1
    cdef int reset(self) except -1
    cdef void reset_at_close(self) noexcept
    # bytes in
    cdef int pause(self) except -1
    cdef int resume(self) except -1
    cdef int go_on(self) except -1
    cdef int go_on_later(self) except -1
    cdef int rest(self) except -1
    cdef bint is_quiet(self) noexcept
    # time
    cdef int arm(self, int64_t ms) except -1
    cdef void disarm(self) noexcept
    cdef int call_at_turn_end(self) except -1
    # what is known of it
    cdef int learn_end(self, bint local, NetAddress *out) except -1
    # inside
    cdef int on_opening(self) except -1
    cdef int on_opened(self) except -1
    cdef int on_readable(self) except -1
    cdef int on_writable(self) except -1
    cdef int on_hung_up(self) except -1
    cdef int hand_on(self, const uint8_t *data, size_t n) except -1
    cdef int consume_pending(self) except -1
    cdef int keep(self, const uint8_t *data, size_t n) except -1
    cdef int part(self) except -1
    cdef void release_memory(self) noexcept
