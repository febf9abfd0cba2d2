# The backend side of HTTP/1.1: response bytes in, head / body / end events out to the UpstreamUser, connections back to the pool.
#
# A connection serves one user at a time and returns to the pool only after a response that was framed, complete, keep-alive and
# followed by nothing, to a request that was written to its end. Everything else is thrown away: a byte too many would be the next
# client's answer. Framing rules: RFC 9112 6.3 and docs/http1.md; every fault is LOST_PROTOCOL (502).

cdef class Upstream(Connection):
    def __init__(self, Engine engine, Endpoint endpoint):
        self.engine = engine
        self.endpoint = endpoint
        self.cluster = endpoint.cluster
        self.ssl = self.cluster.ssl
        self.sni = self.cluster.sni

    def connection_made(self, transport):
        self.idle_ms = 20000
        self.buffer_bytes = 32768
        self.attach(transport, self.ssl is not None)
        self.attached = True
        self.engine.count(G_UPSTREAM_CONNECTIONS_ACTIVE)

    cdef int begin(self, UpstreamUser user, unsigned method) except -1:
        """Hand the connection to a user whose request follows."""
        self.user = user
        self.method = method
        self.buffer_bytes = user.settings.buffer_bytes
        self.idle_ms = user.settings.upstream_idle
        self.parked = False
        self.state = U_HEAD
        self.informational = 0
        self.got_bytes = self.request_done = False
        self.engine.wheel.disarm(self)
        return 0

    cdef int write_request(self, Out *head, iovec *iov, int n, size_t total, bint chunked, bint end) except -1:
        """Head (or NULL) and body pieces in one write. A chunked body is framed here: one chunk for all pieces."""
        cdef iovec all[MAX_IOV + 5]
        cdef uint8_t line[20]
        cdef Out size
        cdef int k = 0, i
        cdef size_t sum = total
        if head != NULL:
            all[0].iov_base = head.data
            all[0].iov_len = head.size
            sum += head.size
            k = 1
        if chunked and total:
            size.data = line
            size.size = 0
            size.cap = sizeof(line)
            out_hex(&size, total)
            out_raw(&size, <const char *>b"\r\n", 2)
            all[k].iov_base = line
            all[k].iov_len = size.size
            sum += size.size
            k += 1
        for i in range(n):
            all[k] = iov[i]
            k += 1
        if chunked and total:
            all[k].iov_base = <void *><const char *>b"\r\n0\r\n\r\n"
            all[k].iov_len = 7 if end else 2
            sum += all[k].iov_len
            k += 1
        elif chunked and end:
            all[k].iov_base = <void *><const char *>b"0\r\n\r\n"
            all[k].iov_len = 5
            sum += 5
            k += 1
        if end:
            self.request_done = True
        self.engine.count_n(G_UPSTREAM_BYTES_SENT, sum)
        return self.sendv(all, k, sum)

    cdef int park(self) except -1:
        """No user any more and clean: back to the pool."""
        self.user = None
        self.drop_witness()
        self.state = U_IDLE
        self.idle_since = self.engine.wheel.now
        self.parked = True
        self.engine.wheel.arm(self, self.idle_since + self.idle_ms)
        self.resume()
        return self.cluster.release(self)

    cdef bint is_current(self) noexcept:
        """Made with the TLS settings that the cluster has now."""
        return self.ssl is self.cluster.ssl and (self.ssl is None or self.sni == self.cluster.sni)

    cdef int drop(self) except -1:
        """The user is done with this connection and it must not be used again."""
        if self.user is not None:
            self.user = None
            self.cluster.done(self.endpoint)
        self.engine.wheel.disarm(self)
        return self.shut(True)

    cdef int on_deadline(self, int64_t now) except -1:
        if self.closed:
            return self.watch_flush()
        if self.parked:
            self.shut(False)
        return 0

    def buffer_updated(self, Py_ssize_t n):
        cdef const uint8_t *data = self.engine.read_data
        cdef ssize_t used
        cdef UpstreamUser user = self.user
        self.engine.wheel.refresh()
        self.engine.count_n(G_UPSTREAM_BYTES_RECEIVED, n)
        self.bulk = n >= READ_SMALL and not self.read_paused and user is not None and user.takes_bulk()
        if self.closed:
            return
        if user is None:
            self.shut(True)  # bytes that nobody asked for: this connection is poisoned
            return
        if self.pending_len:
            self.keep(data, n)
            used = self.process(self.pending, self.pending_len)
            if used < 0:
                return
            self.consume(used)
        else:
            used = self.process(data, n)
            if used < 0:
                return
            if used < n:
                self.keep(data + used, n - used)

    cdef ssize_t process(self, const uint8_t *data, size_t n) except -1:
        """Consume what can be consumed; returns how much. After the end of a response, or a fault, everything counts as consumed."""
        cdef size_t at = 0, used, length
        cdef ssize_t head
        cdef const uint8_t *span
        cdef int result, verdict
        cdef UpstreamUser user = self.user
        self.got_bytes = True
        while self.user is user and not self.closed:
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
                    if self.witness is not None and not self.witness.body(data + at, length):
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
                if result != EF_BAD and used and self.witness is not None:
                    verdict = self.witness.chunks(data + at, used, &self.chunk)
                    if verdict == 2:
                        self.drop_witness()
                    elif verdict == 0:
                        self.engine.count(G_PARSER_DISAGREEMENTS)
                        result = EF_BAD
                at += used
                if result == EF_CHUNK_DATA:
                    user.on_response_body(span, length)
                elif result == EF_CHUNK_DONE:
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
        if self.user is user and not self.closed:
            user.on_response_flush()
            return at
        return n

    cdef ssize_t on_head(self, const uint8_t *data, size_t n) except -1:
        """One head, maybe an interim one. Returns its length, 0 when more bytes are needed or the user is gone."""
        cdef ef_head *head = self.partial
        cdef ssize_t length
        cdef int verdict = 1
        cdef uint16_t status
        if head == NULL:
            head = &self.engine.response_head
            ef_head_reset(head)
        length = ef_head_scan_response(head, &self.user.settings.response_limits, data, n, self.method)
        if length == EF_NEED_MORE:
            if self.partial == NULL:
                self.partial = <ef_head *>malloc(sizeof(ef_head))
                if self.partial == NULL:
                    raise MemoryError
                memcpy(self.partial, head, sizeof(ef_head))
            return 0
        if length < 0:
            self.engine.count(G_UPSTREAM_PROTOCOL_ERRORS)
            self.fail(LOST_PROTOCOL)
            return 0
        if self.partial != NULL:  # the scan is over: its state may go, its result is used from the engine's copy
            memcpy(&self.engine.response_head, self.partial, sizeof(ef_head))
            head = &self.engine.response_head
            free(self.partial)
            self.partial = NULL
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
        if status != 101:
            self.witness = self.engine.response_witness()
            verdict = self.witness.head(data, length, head, self.method == EF_M_HEAD)
            if verdict == 0:
                self.engine.count(G_PARSER_DISAGREEMENTS)
                self.fail(LOST_PROTOCOL)
                return 0
        if head.body == EF_BODY_LENGTH:
            self.left = head.content_length
            self.state = U_LENGTH
        elif head.body == EF_BODY_CHUNKED:
            ef_chunk_reset(&self.chunk)
            self.state = U_CHUNKED
        elif head.body == EF_BODY_EOF:
            self.state = U_EOF
        else:
            self.left = 0
            self.state = U_LENGTH
        if status == 101:
            self.state = U_TUNNEL
        if verdict == 2 and not (head.body == EF_BODY_LENGTH or head.body == EF_BODY_CHUNKED):
            self.drop_witness()
        elif verdict == 1 and head.body == EF_BODY_NONE:
            self.keep_witness()
        elif self.method == EF_M_HEAD:
            self.drop_witness()
        if self.user.on_response_head(data, head):
            self.drop()
            return 0
        return length

    cdef int finish(self, size_t extra) except -1:
        """The response is complete. `extra` bytes follow it, which never happens with an honest backend."""
        cdef UpstreamUser user = self.user
        cdef bint reusable = (
            self.keep_alive and extra == 0 and self.request_done and not self.broken and not self.engine.closing
        )
        if self.witness is not None:
            if not self.witness.complete:
                self.engine.count(G_PARSER_DISAGREEMENTS)
                self.fail(LOST_PROTOCOL)
                return 0
            if self.keep_alive:
                self.keep_witness()
            else:
                self.drop_witness()
        self.served += 1
        self.endpoint.succeeded()
        self.user = None
        self.cluster.done(self.endpoint)
        user.on_response_end()
        if reusable and not self.closed and self.is_current():
            self.park()
        else:
            self.shut(self.spilled or not self.request_done)  # what is still to be sent serves nobody
        return 0

    cdef int fail(self, int why) except -1:
        """The response cannot be used: tell the user, throw the connection away."""
        cdef UpstreamUser user = self.user
        self.user = None
        self.drop_witness()
        self.shut(True)
        if user is not None:
            self.cluster.done(self.endpoint)
            user.on_up_lost(why)
        return 0

    def eof_received(self):
        cdef UpstreamUser user = self.user
        if user is None:
            self.shut(True)  # at once, so that nobody is given a connection that has ended
        elif not self.closed:
            if self.state == U_EOF:
                self.keep_alive = False
                self.finish(0)
            elif self.state == U_TUNNEL:
                self.user = None
                self.cluster.done(self.endpoint)
                user.on_response_end()
                return False
        return False

    def connection_lost(self, exc):
        cdef UpstreamUser user = self.user
        self.closed = True
        self.user = None
        self.drop_witness()
        self.engine.wheel.disarm(self)
        self.engine.count_down(G_UPSTREAM_CONNECTIONS_ACTIVE)
        if user is not None:
            self.cluster.done(self.endpoint)
            if self.state == U_TUNNEL:
                user.on_response_end()
            else:
                user.on_up_lost(LOST_RESET)
        self.cluster.lost(self)
        self.transport = None

    def pause_writing(self):
        self.write_paused = True
        if self.user is not None:
            self.user.on_up_writable(False)

    def resume_writing(self):
        self.write_paused = False
        if self.user is not None:
            self.user.on_up_writable(True)
