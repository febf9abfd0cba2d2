# Frames: an HTTP/2 connection of either side: bytes to nghttp2, and its output, gathered.
#
# In: bytes that passed csrc/h2_guard.h. Out: blocks of fields as text, kept between reads; frames in engine.h2_out; the first of its
# deadlines. An exception of a callback is raised where nghttp2 has returned. The two sides (session.pyx, client.pyx) interpret blocks,
# streams and ends.

cdef class H2Frames(MultiplexedSession):
    def __cinit__(self):
        self.streams = {}
        self.woken = []

    def __dealloc__(self):
        if self.frames != NULL:
            nghttp2_session_del(self.frames)
        free(self.partial.data)

    cdef int prepare(self) except -1:
        """What all connections have in common is there."""
        cdef Engine engine = self.engine
        h2_prepare()
        if engine.h2_text == NULL:
            engine.h2_text = <uint8_t *>malloc(2 * EF_MAX_HEAD)
            if engine.h2_text == NULL:
                raise MemoryError
        return 0

    # --- bytes in --------------------------------------------------------------------------------------------------

    cdef ssize_t feed(self, const uint8_t *data, size_t n) except -1:
        """What nghttp2 has read of it, or why it reads no more: never -1. A breach that was found meanwhile counts more."""
        cdef ssize_t used
        if self.block and self.partial.size:
            memcpy(self.engine.h2_text, self.partial.data, self.text.len)
            memcpy(self.engine.h2_text + self.text.room, self.partial.data + self.text.len, self.text.held)
            self.text.buf = self.engine.h2_text
        self.busy = True
        used = nghttp2_session_mem_recv(self.frames, data, n)
        self.busy = False
        if self.fault is not None:
            fault, self.fault = self.fault, None
            raise fault
        return used

    cdef void begin_block(self, int32_t id, ef_h2_kind kind, bint tls) noexcept:
        """Its fields become text."""
        self.block = id
        self.is_malformed = False
        self.is_trailer = kind == EF_H2_TRAILERS
        ef_h2_text_begin(&self.text, kind, tls, self.limits(), self.engine.h2_text)

    cdef int keep_block(self, int64_t patience) except -1:
        """A block that goes on with the next read: what there is of its text is ours until then."""
        if not self.block:
            self.block_by = 0
            free(self.partial.data)
            memset(&self.partial, 0, sizeof(Out))
            return 0
        self.partial.size = 0
        out_reserve(&self.partial, self.text.len + self.text.held + 1)
        out_raw(&self.partial, self.text.buf, self.text.len)
        out_raw(&self.partial, self.text.buf + self.text.room, self.text.held)
        self.partial.size += 1  # also when there is nothing yet
        if not self.block_by:
            self.block_by = self.engine.wheel.now + patience
        return 0

    # --- frames out ------------------------------------------------------------------------------------------------

    cdef bint gather(self) except -1:
        """Frames into engine.h2_out, H2_SEND bytes or little more. True: there may be others."""
        cdef Out *out = &self.engine.h2_out
        cdef const uint8_t *data
        cdef ssize_t n
        out.size = 0
        while out.size < H2_SEND:
            self.busy = True
            n = nghttp2_session_mem_send(self.frames, &data)
            self.busy = False
            if self.fault is not None:
                fault, self.fault = self.fault, None
                raise fault
            if n < 0:  # no memory, or a fault of ours: what is in the middle of a frame cannot go on
                self.connection.shut(True)
                return False
            if n == 0:
                return out.size >= H2_SEND  # a body stopped there
            out_reserve(out, n)
            out_raw(out, data, n)
        return True

    cdef int mark(self) except -1:
        """What has been said goes out at the end of the turn."""
        return self.connection.call_at_turn_end() if not self.connection.closed else 0

    cdef int more(self, H2Outflow *out, int32_t id) except -1:
        """There is more of a body for nghttp2 to take, or an end."""
        if out.deferred and (out.queue.len or out.ended):
            out.deferred = False
            nghttp2_session_resume_data(self.frames, id)
        return self.mark()

    # --- time ------------------------------------------------------------------------------------------------------

    cdef void watch_writes(self, int64_t now, int64_t patience) noexcept:
        """From when on the socket has to take something."""
        if self.connection.write_paused and not self.write_by:
            self.unsent = self.connection.unsent()
            self.write_by = now + patience

    cdef void ping(self, int64_t now) noexcept:
        self.ping_by = now + H2_PING_MS
        nghttp2_submit_ping(self.frames, NGHTTP2_FLAG_NONE, NULL)

    cdef void ping_silent(self, int64_t now, int64_t every, bint wanted) noexcept:
        """Its time to be asked has come, unless something was heard of it meanwhile."""
        self.ping_at = max(self.heard, now - every + 1) + every
        if wanted and now - self.heard >= every and not self.ping_by and not self.connection.write_paused:
            self.ping(now)

    cdef int arm_first(self, int64_t other) except -1:
        """Of its deadlines, and of one more of its side, the first."""
        cdef int64_t[8] all = [
            other, self.ack_by, self.block_by, self.idle_by, self.ping_at, self.ping_by, self.look_at, self.write_by
        ]
        cdef int64_t at = 0
        cdef int i
        for i in range(8):
            if all[i] and (at == 0 or all[i] < at):
                at = all[i]
        if at == 0:
            self.connection.disarm()
            return 0
        return self.connection.arm(at - self.engine.wheel.now)

    # --- what each side does about it ------------------------------------------------------------------------------

    cdef const ef_head_limits *limits(self) noexcept:
        """Of the block that is being read."""
        return &H2_TRAILER_LIMITS

    cdef int on_begin_block(self, int32_t id, bint begins) except -1:
        """`begins`: a request, and a stream with it."""
        raise NotImplementedError

    cdef int took(self, void *stream, size_t n) except -1:
        """The peer gets so many bytes from the front of a stream's queue, which are to go."""
        raise NotImplementedError

    cdef int on_stream_over(self, int32_t id, uint32_t code) except -1:
        """Ended by both sides, or reset by one."""
        raise NotImplementedError
