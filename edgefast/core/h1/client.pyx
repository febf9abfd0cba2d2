# Client: HTTP/1.1 with backends: response bytes in, head / body / end events to the UpstreamUser, connections back to the pool.
#
# A connection serves one user at a time. It returns to the pool only after a request that was written to its end. Its response must be
# framed, complete, keep-alive and followed by nothing. Every other connection is closed. A byte too many would be the next client's answer.
# Framing rules: RFC 9112 6.3 and docs/reference/http1.md; every fault is LOST_PROTOCOL (502).

cdef class H1Client(H1Requester):
    def __cinit__(self, Engine engine, Endpoint endpoint):
        self.engine = engine
        self.endpoint = endpoint
        self.cluster = endpoint.cluster
        self.protocol = HTTP_1_1
        self.idle_ms = 20000

    def __dealloc__(self):
        free(self.partial)
        out_free(&self.trailers)

    cdef int on_open(self) except -1:
        self.opened = True
        self.connection.counted = &self.engine.stat.globals[G_UPSTREAM_BYTES_RECEIVED]
        self.engine.count(G_UPSTREAM_CONNECTIONS_ACTIVE)
        return 0

    cdef int begin(self, UpstreamUser user, unsigned method, bint unsized, uint64_t announced, bytes asked, bint takes_trailers) except -1:
        self.user = user
        self.method = method
        self.unsized = unsized
        self.owed = announced
        self.asked = asked
        self.connection.buffer_bytes = user.settings.buffer_bytes
        self.idle_ms = user.settings.upstream_idle
        self.parked = False
        self.state = U_HEAD
        self.informational = 0
        self.got_bytes = self.request_done = False
        self.unprocessed = True
        self.connection.disarm()
        return 0

    # --- the pool ------------------------------------------------------------------------------------------------------

    cdef int park(self) except -1:
        self.user = None
        drop_parser_check(self.parser_check)
        self.parser_check = None
        self.state = U_IDLE
        self.idle_since = self.engine.wheel.now
        self.parked = True
        self.connection.arm(self.idle_ms)
        self.connection.resume()
        return self.cluster.release(self)

    cdef bint is_current(self) noexcept:
        return self.tls is self.cluster.tls and (self.tls is None or self.sni == self.cluster.sni)

    cdef bint is_open(self) noexcept:
        return self.connection is not None and not self.connection.closed

    cdef bint is_quiet(self) noexcept:
        return self.connection.is_quiet()

    cdef int stop(self, bint abort) except -1:
        if not abort and self.user is not None:
            return 0
        return self.connection.shut(abort)

    cdef int drop(self, Cut why) except -1:
        if self.user is not None:
            self.user = None
            self.cluster.done(self.endpoint)
        self.connection.disarm()
        return self.connection.shut(True)

    cdef int hang_up(self) except -1:
        self.user = None
        self.cluster.done(self.endpoint)
        return self.connection.shut(False)

    cdef int end_tunnel(self) except -1:
        return self.connection.end_writes()

    cdef int on_deadline(self, int64_t now) except -1:
        if self.parked:
            return self.connection.shut(False)
        return 0

    # --- flow ----------------------------------------------------------------------------------------------------------

    cdef int pause(self) except -1:
        return self.connection.pause()

    cdef int resume(self) except -1:
        return self.connection.resume()

    cdef bint has_room(self) noexcept:
        return self.connection.has_room()

    cdef size_t unsent(self) noexcept:
        return self.connection.unsent()

    cdef bint takes_bulk(self) noexcept:
        return self.user is not None and self.user.takes_bulk()

    cdef int on_writable(self, bint writable) except -1:
        cdef UpstreamUser user = self.user
        self.write_paused = not writable
        return user.on_up_writable(writable) if user is not None else 0

    cdef bytes local_address(self):
        if self.local is None:
            self.local = address_of(self.connection, True)
        return self.local

    # --- the response --------------------------------------------------------------------------------------------------

    cdef ssize_t received(self, const uint8_t *data, size_t n) except -1:
        """After the end of a response, or a fault, everything counts as consumed."""
        cdef size_t at = 0, used, length
        cdef ssize_t head
        cdef const uint8_t *span
        cdef int result, decision
        cdef UpstreamUser user = self.user
        cdef Connection connection = self.connection
        if user is None:
            connection.shut(True)  # bytes that nobody asked for: this connection is poisoned
            return n
        self.got_bytes = True
        while self.user is user and not connection.closed:
            if self.state == U_HEAD:
                if at == n:
                    break
                head = self.on_head(data + at, n - at)
                if head == 0:
                    break
                at += head
            elif self.state == U_LENGTH:
                length = n - at
                if length > self.left:
                    length = <size_t>self.left
                if length:
                    if self.parser_check is not None and not self.parser_check.body(data + at, length):
                        self.engine.count(G_PARSER_DISAGREEMENTS)
                        self.fail(LOST_PROTOCOL)
                        return n
                    user.on_response_body(data + at, length)
                    self.left -= length
                    at += length
                if self.left == 0:
                    self.finish(n - at)
                    return n
                break
            elif self.state == U_CHUNKED:
                if at == n:
                    break
                result = ef_chunk_feed(&self.chunk, data + at, n - at, &used, &span, &length)
                if result != EF_BAD and used and self.parser_check is not None:
                    decision = self.parser_check.chunks(data + at, used, &self.chunk)
                    if decision == 2:
                        drop_parser_check(self.parser_check)
                        self.parser_check = None
                    elif decision == 0:
                        self.engine.count(G_PARSER_DISAGREEMENTS)
                        result = EF_BAD
                at += used
                if result == EF_CHUNK_DATA:
                    user.on_response_body(span, length)
                elif result == EF_CHUNK_TRAILER:
                    out_reserve(&self.trailers, length)
                    out_raw(&self.trailers, span, length)
                elif result == EF_CHUNK_DONE:
                    if self.trailers.size:
                        self.end_trailers(user)
                    self.finish(n - at)
                    return n
                elif result == EF_BAD:
                    self.engine.count(G_UPSTREAM_PROTOCOL_ERRORS)
                    self.fail(LOST_PROTOCOL)
                    return n
                else:
                    break
            else:  # U_EOF, U_TUNNEL
                if at < n:
                    user.on_response_body(data + at, n - at)
                    at = n
                break
        if self.user is user and not connection.closed:
            user.on_response_flush()
            return at
        return n

    cdef ssize_t on_head(self, const uint8_t *data, size_t n) except -1:
        """One head, maybe an interim one. Returns its length, 0 when more bytes are needed or the user is gone."""
        cdef ef_head *head = self.partial
        cdef ssize_t length
        cdef int decision = 1
        cdef uint16_t status
        cdef uint64_t digest
        if head == NULL:
            head = &self.engine.response_head
            ef_head_reset(head)
        length = ef_head_scan_response(head, &self.user.settings.response_limits, data, n, self.method)
        if length == EF_NEED_MORE:
            partial_head_keep(&self.partial, head)
            return 0
        if length < 0:
            self.engine.count(G_UPSTREAM_PROTOCOL_ERRORS)
            self.fail(LOST_PROTOCOL)
            return 0
        head = &self.engine.response_head
        partial_head_done(&self.partial, head)
        status = head.response_status
        if status < 200 and status != 101:
            self.informational += 1
            if self.informational > MAX_INFORMATIONAL:
                self.engine.count(G_UPSTREAM_PROTOCOL_ERRORS)
                self.fail(LOST_PROTOCOL)
                return 0
            self.user.on_response_info(data, head)
            return length
        self.keep_alive = head.keep_alive
        if status == 101 and not switches_as_asked(self.asked, data, head):
            self.engine.count(G_UPSTREAM_PROTOCOL_ERRORS)
            self.fail(LOST_SWITCHED)
            return 0
        if status != 101:
            digest = hash_response(data, length, head, self.method == EF_M_HEAD)
            if digest == 0 or digest != self.agreed_head:
                self.parser_check = response_parser_check(self.engine)
                decision = self.parser_check.head(data, length, head, self.method == EF_M_HEAD)
                self.agreed_head = digest if decision == 1 else 0
            if decision == 0:
                self.engine.count(G_PARSER_DISAGREEMENTS)
                self.fail(LOST_PROTOCOL)
                return 0
        if head.body == EF_BODY_LENGTH:
            self.left = head.content_length
            self.state = U_LENGTH
        elif head.body == EF_BODY_CHUNKED:
            ef_chunk_reset(&self.chunk)
            self.trailers.size = 0
            self.nominates = head.nominates
            self.state = U_CHUNKED
        elif head.body == EF_BODY_EOF:
            self.state = U_EOF
        else:
            self.left = 0
            self.state = U_LENGTH
        self.tunnel = status == 101
        if self.tunnel:
            self.state = U_TUNNEL
        if decision == 2 and not (head.body == EF_BODY_LENGTH or head.body == EF_BODY_CHUNKED):
            drop_parser_check(self.parser_check)
            self.parser_check = None
        elif decision == 1 and head.body == EF_BODY_NONE:
            release_parser_check(self.engine, self.parser_check)
            self.parser_check = None
        elif self.method == EF_M_HEAD:
            drop_parser_check(self.parser_check)
            self.parser_check = None
        if self.user.on_response_head(data, head):
            self.drop(CUT_CANCEL)
            return 0
        return length

    cdef int end_trailers(self, UpstreamUser user) except -1:
        """They are complete. What Connection names does not go on, here either (RFC 9110 7.6.1): then none of them does."""
        if not self.nominates:
            user.on_response_trailers(self.trailers.data, self.trailers.size)
        out_free(&self.trailers)
        return 0

    cdef int finish(self, size_t extra) except -1:
        """The response is complete. `extra` bytes follow it, which never happens with an honest backend."""
        cdef UpstreamUser user = self.user
        cdef bint reusable = (
            self.keep_alive and extra == 0 and self.request_done and not self.connection.broken
            and self.connection.unsent() == 0 and not self.engine.closing and not has_carried(user, self.served + 1)
        )
        if self.parser_check is not None:
            if not self.parser_check.complete:
                self.engine.count(G_PARSER_DISAGREEMENTS)
                self.fail(LOST_PROTOCOL)
                return 0
            release_parser_check(self.engine, self.parser_check)
            self.parser_check = None
        self.served += 1
        self.endpoint.succeeded()
        self.user = None
        self.cluster.done(self.endpoint)
        user.on_response_end()
        if reusable and not self.connection.closed and self.is_current():
            self.park()
        else:
            self.connection.shut(self.connection.unsent() > 0 or not self.request_done)  # what is still to be sent serves nobody
        return 0

    cdef int fail(self, int why) except -1:
        """The response cannot be used: tell the user, throw the connection away."""
        cdef UpstreamUser user = self.user
        self.user = None
        drop_parser_check(self.parser_check)
        self.parser_check = None
        self.connection.shut(True)
        if user is not None:
            self.cluster.done(self.endpoint)
            user.on_up_lost(why)
        return 0

    cdef int on_eof(self) except -1:
        cdef UpstreamUser user = self.user
        if user is None:
            return self.connection.shut(True)  # at once, so that nobody is given a connection that has ended
        if self.state == U_EOF:
            self.keep_alive = False
            self.finish(0)
        elif self.state == U_TUNNEL:
            self.user = None
            self.cluster.done(self.endpoint)
            user.on_response_end()
        else:
            return self.connection.shut(True)  # no answer can come any more: what is still to be sent serves nobody
        return self.connection.shut(False)

    cdef int on_lost(self) except -1:
        cdef UpstreamUser user = self.user
        self.user = None
        drop_parser_check(self.parser_check)
        self.parser_check = None
        partial_head_free(&self.partial)
        self.engine.count_down(G_UPSTREAM_CONNECTIONS_ACTIVE)
        if user is not None:
            self.cluster.done(self.endpoint)
            if self.state == U_TUNNEL:
                user.on_response_end()
            else:
                user.on_up_lost(LOST_RESET)
        return self.cluster.lost(self)
