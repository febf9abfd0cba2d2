# Call: the answer on a stream of a backend's connection.
#
# In: blocks of fields, body bytes, the end or a reset, from the session.
# Out: events of the user; the last is one of on_response_end and on_up_lost. The backend's window opens only for bytes that the user has
# taken: that bounds memory.

cdef class H2Call(H2Requester):
    def __cinit__(self, H2Client session):
        self.session = session
        self.out.stream = <void *>self
        self.engine = session.engine
        self.endpoint = session.endpoint
        self.protocol = HTTP_2
        self.is_http2 = True
        self.may_refuse = self.shares = True
        self.left = -1
        self.why = LOST_RESET

    cdef int on_block(self, bint ends) except -1:
        """A block is complete."""
        cdef H2Client session = self.session
        cdef ef_h2_block facts
        cdef UpstreamUser user = self.user
        cdef int length
        facts.method = self.method
        facts.ends = ends
        facts.key = NULL
        self.got_bytes = True
        if self.answered:
            length = ef_h2_text_end(&session.text, &H2_TRAILER_LIMITS, &facts, NULL)
            if session.is_malformed or length < 0 or not ends:
                return self.malformed()
            session.turn_to(self)
            if length and not self.tunnel:
                user.on_response_trailers(session.text.buf, length)
            return self.finish()
        length = ef_h2_text_end(&session.text, &session.settings.response_limits, &facts, &self.engine.response_head)
        if session.is_malformed or length < 0:
            return self.malformed()
        return self.on_head(length, ends)

    cdef int on_head(self, int length, bint ends) except -1:
        """engine.response_head is of the session's text."""
        cdef H2Client session = self.session
        cdef ef_head *head = &self.engine.response_head
        cdef uint16_t status = head.response_status
        if status == 101:  # HTTP/2 has none (RFC 9113 8.6)
            return self.malformed()
        if status < 200:
            self.informational += 1
            if ends or self.informational > MAX_INFORMATIONAL:
                return self.malformed()
            session.turn_to(self)
            self.user.on_response_info(session.text.buf, head)
            return 0
        self.answered = True
        if self.key is not None and status < 300:
            if ends:
                return self.malformed()
            self.tunnel = True
            return self.switch(head, length)
        if head.body == EF_BODY_LENGTH:
            self.left = <int64_t>head.content_length
        elif head.body == EF_BODY_NONE:
            self.left = 0
            if not ends and self.method != EF_M_HEAD and status != 204 and status != 304:
                head.body = EF_BODY_LENGTH  # of no bytes: trailers follow
        if ends:
            if self.left > 0:
                return self.malformed()
            head.body = EF_BODY_NONE
        session.turn_to(self)
        if self.user.on_response_head(session.text.buf, head):
            return self.drop(CUT_CANCEL)
        return self.finish() if ends and self.user is not None else 0

    cdef int switch(self, ef_head *head, int length) except -1:
        """The backend has agreed to a tunnel (RFC 8441): what HTTP/1.1 would have answered (RFC 6455 4.2.2)."""
        cdef bytes text = self.session.text.buf[:length]
        cdef bytes lines = text[text.index(b"\r\n") + 2:].replace(b"transfer-encoding: chunked\r\n", b"")
        cdef bytes accept = b64encode(sha1(self.key + WEBSOCKET_GUID).digest())
        text = (
            b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: %b\r\n" % accept
        ) + lines
        ef_head_reset(head)
        if ef_head_scan_response(
            head, &self.session.settings.response_limits, <const uint8_t *>PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text), self.method
        ) < 0:
            return self.malformed()
        self.session.turn_to(self)
        if self.user.on_response_head(<const uint8_t *>PyBytes_AS_STRING(text), head):
            return self.drop(CUT_CANCEL)
        self.flush()  # while the text is there
        return 0

    cdef int body(self, const uint8_t *data, size_t n) except -1:
        cdef H2Client session = self.session
        nghttp2_session_consume_connection(session.frames, n)  # clients share it: nobody waits for another one's
        if self.user is None:
            return 0
        if not self.answered:
            return self.malformed()
        if self.left >= 0:
            if <uint64_t>n > <uint64_t>self.left:
                return self.malformed()
            self.left -= n
        session.turn_to(self)
        self.new_cookies += n
        self.user.on_response_body(data, n)
        return 0

    cdef int flush(self) except -1:
        """That is all of this read. What its client did not take at once stays away from the window."""
        cdef size_t n = self.new_cookies
        self.new_cookies = 0
        if self.user is not None:
            self.user.on_response_flush()
        if self.session is None or n == 0:
            return 0
        if self.held:
            self.unconsumed += n
        else:
            nghttp2_session_consume_stream(self.session.frames, self.id, n)
        return 0

    cdef int pause(self) except -1:
        self.held = True
        return 0

    cdef int resume(self) except -1:
        self.held = False
        if self.unconsumed and self.session is not None:
            nghttp2_session_consume_stream(self.session.frames, self.id, self.unconsumed)
            self.unconsumed = 0
            return self.session.mark()
        return 0

    # --- ends ------------------------------------------------------------------------------------------------------

    cdef int finish(self) except -1:
        """END_STREAM: the answer is complete. What the backend did not wait for, it does not need."""
        cdef UpstreamUser user = self.user
        cdef H2Client session = self.session
        if not self.answered or self.left > 0:
            return self.malformed()
        session.served += 1
        self.endpoint.succeeded()
        self.user = None
        session.cluster.done(self.endpoint)
        session.turn_to(self)
        user.on_response_end()
        return self.detach(NGHTTP2_CANCEL) if not self.request_done else 0

    cdef int malformed(self) except -1:
        """It is no answer: its stream ends, and nobody else's."""
        self.engine.count(G_UPSTREAM_PROTOCOL_ERRORS)
        self.detach(NGHTTP2_PROTOCOL_ERROR)
        return self.lost(LOST_PROTOCOL)

    cdef int close(self, uint32_t code) except -1:
        """The stream is no more: ended by both sides, or reset by one."""
        if self.session is None:
            return 0
        queue_free(&self.out.queue)
        self.write_paused = False
        self.session.paced.pop(self.id, None)
        if code == NGHTTP2_REFUSED_STREAM and not self.got_bytes:
            self.unprocessed = True
        if self.user is not None and not self.was_reset and code == NGHTTP2_PROTOCOL_ERROR:  # nghttp2 has found it malformed
            self.engine.count(G_UPSTREAM_PROTOCOL_ERRORS)
            self.why = LOST_PROTOCOL
        self.lost(self.why)
        self.session = None
        return 0

    cdef int lost(self, UpLost why) except -1:
        """Its user hears that nothing comes any more."""
        cdef UpstreamUser user
        cdef H2Client session = self.session
        if self.user is None:
            return 0
        if session is not None:
            session.turn_to(self)
            self.flush()  # what came before it is the client's
        user = self.user
        if user is None:
            return 0
        self.user = None
        self.endpoint.cluster.done(self.endpoint)
        if self.tunnel:
            return user.on_response_end()
        if self.unprocessed and not self.got_bytes:
            self.engine.count(G_UPSTREAM_H2_UNPROCESSED)
        return user.on_up_lost(why)
