# Stream: the request side of a stream: one Exchange, from its head to its end.
#
# In: a scanned head, body bytes, the client's end or reset, from the session. Out: calls on the exchange. A body with another length than
# its head declares resets the stream: its exchange never receives an end.

cdef class H2Stream(H2Responder):
    def __cinit__(self, H2Server session, int32_t id):
        self.session = session
        self.out.stream = <void *>self
        self.engine = session.engine
        self.peer = session.peer
        self.protocol = HTTP_2
        self.is_http2 = self.defers = True
        self.id = id

    cdef int begin(self, const uint8_t *base, ef_head *head, bint ends) except -1:
        """`base` is valid during the call."""
        cdef PortTable port = self.session.port
        cdef Exchange ex
        if (head.upgrade or self.key is not None) and (ends or self.key is None or not head.upgrade or head.body != EF_BODY_NONE):
            # no tunnel can come of it; one whose block has only pseudo fields has no Sec-WebSocket-Version (RFC 6455 4.1), and no key here
            self.engine.count(G_H2_MALFORMED)
            return self.reset(NGHTTP2_PROTOCOL_ERROR)
        port.approach(base + head.host_off, head.host_len)
        self.left = -1
        if head.body == EF_BODY_LENGTH:
            self.left = <int64_t>head.content_length
        elif self.key is None and head.body == EF_BODY_NONE:
            self.left = 0
        port.approach_host()
        self.wants_continue = head.expect_continue
        self.request_over = ends
        self.handing = True
        self.session.touched.append(self)
        ex = self.exchange = make_exchange(self)
        if head.notes & EF_NOTE_HOST_DOT:
            ef_head_drop_host_dot(head, <uint8_t *>base)
        ex.begin(base, head)
        if self.exchange is not ex:
            return 0
        self.reads_until = self.engine.wheel.now + BODY_PATIENCE_MS
        self.recount()
        return ex.request_end() if ends or self.key is not None else 0

    cdef int body(self, const uint8_t *data, size_t n) except -1:
        cdef Exchange ex = self.exchange
        cdef iovec piece
        cdef H2Server session = self.session
        self.wants_continue = False
        if self.left >= 0:
            if <uint64_t>n > <uint64_t>self.left:
                self.engine.count(G_H2_MALFORMED)
                return self.reset(NGHTTP2_PROTOCOL_ERROR)
            self.left -= n
        if ex is None or (self.key is not None and not self.tunnel):  # it is read and dropped
            self.dropped += n
            if self.dropped <= LINGER_BYTES:
                nghttp2_session_consume(session.frames, self.id, n)
            else:
                nghttp2_session_consume_connection(session.frames, n)
            if self.key is not None and not self.answered:  # there is no tunnel yet, and maybe never: it must not be lost silently
                self.engine.count(G_H2_MALFORMED)
                return self.reset(NGHTTP2_PROTOCOL_ERROR)
            return 0
        if not self.handing:
            self.handing = True
            session.touched.append(self)
        piece.iov_base = <void *>data
        piece.iov_len = n
        ex.request_body(&piece, 1, n, self.left)
        if self.read_paused:
            self.unconsumed += n
        elif self.session is not None:
            nghttp2_session_consume(session.frames, self.id, n)
        return 0

    cdef int end(self) except -1:
        """END_STREAM."""
        cdef Exchange ex = self.exchange
        cdef H2Server session = self.session
        if self.left > 0:
            self.engine.count(G_H2_MALFORMED)
            return self.reset(NGHTTP2_PROTOCOL_ERROR)
        if ex is not None and self.key is not None and not self.tunnel and not self.answered:  # nobody is left to tunnel for
            if session.breach == EF_H2_CALM:
                session.breach = ef_h2_guard_reset(&session.guard, self.engine.wheel.now)
            return self.reset(NGHTTP2_CANCEL)
        self.request_over = True
        if ex is None:
            return 0
        if self.key is None:
            return ex.request_end()
        return ex.tunnel_half_closed() if self.tunnel else 0

    cdef int new_cookies(self) except -1:
        """All of a read has been handed over. Of a request that it has brought to a reset no backend hears."""
        cdef Exchange ex
        cdef H2Server session = self.session
        self.handing = False
        if session is not None and not self.is_reset and not self.request_over and nghttp2_session_get_outbound_queue_size(session.frames):
            session.flush()  # a body that is not as long as its head says nghttp2 resets by itself: that is told when it is sent
        ex = self.exchange
        if ex is None or self.session is None:
            return 0
        if self.is_reset:
            self.exchange = None
            return ex.client_gone()
        if self.wants_continue and not self.request_over:
            ex.allow_body()
        return ex.flush()

    cdef int close(self) except -1:
        """The stream is no more: ended by both sides, or reset by one."""
        cdef Exchange ex = self.exchange
        cdef H2Server session = self.session
        if session is None:
            return 0
        self.exchange = None
        self.drop_queue()
        self.session = None
        if not self.surplus:
            memory_of(self.engine).count(-1)
            session.holder.streams -= 1
            self.engine.trim.fell(&self.engine.trim.streams, memory_of(self.engine).streams)
        self.handing = False
        if self.unconsumed:
            nghttp2_session_consume_connection(session.frames, self.unconsumed)
            self.unconsumed = 0
        return ex.client_gone() if ex is not None else 0

    cdef int give_up(self, uint32_t code) except -1:
        """Reset, and what it holds is free at once: the frame that says so may wait for as long as the client reads nothing."""
        cdef Exchange ex = self.exchange
        self.exchange = None
        self.out.ended = False  # what is left is no end
        self.drop_queue()
        self.reset(code)
        return ex.client_gone() if ex is not None else 0

    cdef void drop_queue(self) noexcept:
        queue_free(&self.out.queue)
        self.heads = 0
        self.recount()
        self.write_paused = False
