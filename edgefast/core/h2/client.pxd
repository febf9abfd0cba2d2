# Client: an HTTP/2 connection to a backend, and the requests on it.

cdef class H2Requester(Outbound):
    cdef:
        H2Client session        # None: the stream is closed, or never was
        int32_t id              # 0: nothing was written yet
        unsigned method         # enum ef_method
        H2Outflow out           # the request's body, as far as the backend has not taken it
        uint64_t owed           # of a body with a length: bytes that are still to be written
        bytes asked             # the protocols it would switch to; None: none
        bytes key               # Sec-WebSocket-Key of a tunnel that is asked for; None: none is
        bint unsized            # the body has no length in its head
        bint takes_trailers     # the client does
        bint request_done       # END_STREAM is out
        bint is_reset           # by us: the frame that says so is on its way, or waits (backend_cancels.pyx)
        bint counted            # ... and its connection's budget knows of it
        bint hung_up            # nobody waits for more of it, once what is queued is sent
        int64_t leave_by        # ms; ... and something of that has to be, until then

    cdef int submit(self, Out *head, bint has_body) except -1
    cdef int more(self) except -1
    cdef int detach(self, uint32_t code) except -1
    cdef void took(self, size_t n) noexcept
    cdef int sent_end(self) except -1


cdef class H2Call(H2Requester):
    cdef:
        int64_t left            # body bytes of the answer that are still to come; -1: nobody knows
        size_t new_cookies           # of those that came, what its user was told of in this read
        size_t unconsumed       # ... and what the backend's window is not told of yet
        uint32_t informational  # 1xx of this answer
        UpLost why              # what `lost` is to say, when it is not for the peer's doing
        bint answered           # the head of the final answer is here
        bint held               # its user takes no more for now
        bint was_reset          # by the peer

    cdef int on_block(self, bint ends) except -1
    cdef int on_head(self, int length, bint ends) except -1
    cdef int body(self, const uint8_t *data, size_t n) except -1
    cdef int finish(self) except -1
    cdef int malformed(self) except -1
    cdef int close(self, uint32_t code) except -1
    cdef int lost(self, UpLost why) except -1
    cdef int flush(self) except -1
    cdef int switch(self, ef_head *head, int length) except -1


cdef class H2Client(H2Frames):
    cdef:
        Cluster cluster
        HttpSettings settings   # of whoever had it made
        object tls              # what it was made with; None: plain
        str sni
        PoolDial dial           # who waits for it; None: it is there
        set unborn              # H2Calls that have written nothing yet
        list fresh              # those whose head is in what is being sent
        list failed             # those whose users are to be told so at the end of the turn
        H2Call current          # whose user was told something that is not flushed yet
        bytes local             # "10.0.0.1:40000", our end; None: no log line has asked for it
        bint opened             # its connection has been there
        bint freed              # there may be room for who waits
        int64_t pace_at         # ms: when the first of them is looked at; 0: there are none
        int64_t ready_by        # ms: until then its SETTINGS have to be here; 0: they are

    cdef int on_settings(self) except -1
    cdef int turn_to(self, H2Call call) except -1
    cdef int fail_later(self, H2Call call) except -1
    cdef int on_freed(self) except -1
    cdef int flush(self) except -1
    cdef int drain(self) except -1
    cdef int look(self) except -1
    cdef int suspect(self) except -1
    cdef int calm(self, int breach) except -1
    cdef int terminate(self, uint32_t code, UpLost why) except -1
    cdef int over(self, UpLost why) except -1
    cdef int release_calls(self, UpLost why) except -1
    cdef int rearm(self) except -1
