# Requester: writes requests to streams of a backend's connection: heads, and a queue of body bytes for the backend's windows.
#
# In: the writes of a user. Out: fields, DATA, trailers; the output of a turn is sent at its end. It reads nothing; H2Call is its other
# half. After the stream is closed it writes nothing.

cdef int h2_look_at_hung_up(H2Client session, int64_t now) except -1:
    """Nobody waits for them: a backend whose window stays shut would keep them, and their end, for ever."""
    cdef H2Requester call
    session.look_at = 0
    for call in list(session.streams.values()):
        if call.hung_up and call.leave_by <= now:
            call.detach(NGHTTP2_CANCEL)
        elif call.hung_up and (session.look_at == 0 or call.leave_by < session.look_at):
            session.look_at = call.leave_by
    return 0


cdef class H2Requester(Outbound):
    def __dealloc__(self):
        h2_outflow_free(&self.out)

    cdef int begin(self, UpstreamUser user, unsigned method, bint unsized, uint64_t announced, bytes asked, bint takes_trailers) except -1:
        self.user = user
        self.method = method
        self.unsized = unsized
        self.owed = announced
        self.asked = asked
        self.takes_trailers = takes_trailers
        self.unprocessed = True
        if self.session is not None:
            self.served = self.session.served
        return 0

    cdef int write(self, Out *head, iovec *iov, int n, size_t total, bint end, Out *trailers) except -1:
        cdef H2Client session = self.session
        if session is None or self.out.ended or self.is_reset:
            return 0
        if not self.unsized and not self.tunnel:
            if total > self.owed or (end and total < self.owed):
                _log.error("http2: request body length differs from content-length; stream reset")
                return session.fail_later(<H2Call>self)
            self.owed -= total
        if total:
            queue_append(&self.out.queue, iov, n, 0, total, H2_BLOCK)
        if end and self.key is None:
            self.out.ended = True
            if trailers.size:
                out_reserve(&self.out.trailers, trailers.size)
                out_raw(&self.out.trailers, trailers.data, trailers.size)
        # gRPC servers wait for END_STREAM on a DATA frame, also when the call has no message (doc/PROTOCOL-HTTP2.md, EOS)
        if head != NULL and self.submit(head, total or not end or trailers.size or self.user.grpc):
            return session.fail_later(<H2Call>self)
        if self.out.queue.len > session.connection.buffer_bytes:
            self.write_paused = True
        return self.more()

    cdef int submit(self, Out *head, bint has_body) except -1:
        """The stream begins. 1: it cannot."""
        cdef H2Client session = self.session
        cdef ef_h2_pair *pairs = session.engine.h2_pairs
        cdef const uint8_t *key
        cdef size_t key_len
        cdef int n
        if session.draining or session.connection.closed:
            return 1
        if self.asked is not None:
            if not session.connects or protocols_of(self.asked) != [b"websocket"]:
                (<H2Call>self).why = LOST_SWITCHED
                return 1
            if not find_line(head.data, head.size, <const uint8_t *>b"sec-websocket-key", 17, &key, &key_len):
                (<H2Call>self).why = LOST_SWITCHED
                return 1
            self.key = key[:key_len]
            has_body = True
            self.out.ended = False
        n = ef_h2_lines_request(head.data, head.size, session.tls is not None, self.key is not None, pairs, H2_PAIRS - 1)
        if n < 0:
            _log.error("http2: request has an invalid header field or too many header fields")
            (<H2Call>self).why = LOST_PROTOCOL
            return 1
        if self.takes_trailers:
            memset(&pairs[n], 0, sizeof(ef_h2_pair))
            pairs[n].name = <uint8_t *><const char *>b"te"
            pairs[n].name_len = 2
            pairs[n].value = <uint8_t *><const char *>b"trailers"
            pairs[n].value_len = 8
            n += 1
        self.id = nghttp2_submit_request(session.frames, NULL, <const nghttp2_nv *>pairs, n, &H2_BODY if has_body else NULL, &self.out)
        if self.id < 0:  # there are no more numbers
            self.id = 0
            session.drain()
            return 1
        session.unborn.discard(self)
        session.streams[self.id] = self
        ef_h2_guard_stream(&session.guard, session.engine.wheel.now)
        return 0

    cdef int more(self) except -1:
        """There is more for nghttp2 to take, or an end."""
        return self.session.more(&self.out, self.id)

    cdef void took(self, size_t n) noexcept:
        """The backend gets these bytes."""
        queue_take(&self.out.queue, n)
        self.leave_by = self.engine.wheel.now + self.session.settings.stream_idle_timeout
        if self.write_paused and self.out.queue.len <= self.session.connection.buffer_bytes // 4:
            self.write_paused = False
            self.session.woken.append(self)

    cdef int sent_end(self) except -1:
        """END_STREAM is out."""
        self.request_done = True
        if self.hung_up and self.session is not None:
            return self.detach(NGHTTP2_CANCEL)
        return 0

    cdef bint has_room(self) noexcept:
        return False  # windows say what can be sent, and they are small

    cdef size_t unsent(self) noexcept:
        return self.out.queue.len

    # --- ends ------------------------------------------------------------------------------------------------------

    cdef int drop(self, Cut why) except -1:
        cdef H2Client session = self.session
        if self.user is not None:
            self.user = None
            self.endpoint.cluster.done(self.endpoint)
        self.detach(h2_code_of(why))
        return session.suspect() if session is not None and why == CUT_TIMEOUT else 0

    cdef int hang_up(self) except -1:
        if self.user is not None:
            self.user = None
            self.endpoint.cluster.done(self.endpoint)
        if self.session is None:
            return 0
        self.out.ended = self.hung_up = True
        self.leave_by = self.engine.wheel.now + self.session.settings.stream_idle_timeout
        if not self.session.look_at:
            self.session.look_at = self.leave_by
        return self.more()

    cdef int end_tunnel(self) except -1:
        if self.session is None:
            return 0
        self.out.ended = True
        return self.more()

    cdef int detach(self, uint32_t code) except -1:
        """No more of it: what it holds is free at once, though the frame that says so may have to wait. Until then its body has no end: what
        the backend has of it would be taken for all of it."""
        cdef H2Client session = self.session
        if session is None or self.is_reset:
            return 0
        self.is_reset = True
        queue_free(&self.out.queue)
        self.out.trailers.size = 0
        self.write_paused = False
        self.out.ended = self.request_done
        if self.id == 0:
            self.session = None
            session.unborn.discard(self)
            session.begun -= 1
            return session.on_freed()
        return h2_cancel(<H2Call>self, code)

    cdef bytes local_address(self):
        cdef H2Client session = self.session
        if session is None:
            return b""
        if session.local is None:
            session.local = address_of(session.connection, True)
        return session.local
