# The client side of HTTP/1.1: request bytes in, one Exchange at a time out, its answer back in order.
#
# Reads go through the worker's one buffer; only an incomplete head or requests that came too early are copied. Every fault in
# framing is answered once, with `connection: close`, and nothing after it is looked at (docs/http1.md). Bodies are passed on as they
# come; when the other side cannot take more, reading stops.

cdef const char *DISAGREE = "the two parsers disagree about this message"


cdef class Downstream(Responder):
    def __init__(self, Engine engine, PortTable port, bint tls):
        self.engine = engine
        self.port = port
        self.tls = tls
        self.peer_port = -1

    def connection_made(self, transport):
        cdef Engine engine = self.engine
        cdef uint8_t address[INET_SIZE]
        self.attach(transport, self.tls)
        self.buffer_bytes = self.port.settings.buffer_bytes if self.port.settings is not None else 32768
        engine.count(G_CONNECTIONS_TOTAL)
        engine.count(G_CONNECTIONS_ACTIVE)
        engine.connections.add(self)
        if self.port.settings is None or len(engine.connections) > self.port.settings.max_connections:
            engine.count(G_CONNECTIONS_REFUSED)
            self.shut(True)
            return
        engine.wheel.refresh()
        if self.tls:
            engine.count(G_CONNECTIONS_TLS_TOTAL)
            sni = getattr(transport.get_extra_info("ssl_object"), "sni", "")
            if sni:
                self.sni = sni.lower().encode()
        self.take_address(inet_text(address) if inet_of(self, False, address) >= 0 else b"127.0.0.1")  # a unix socket's peer is here
        self.state = D_PROXY if self.port.proxy_protocol else D_HEAD
        engine.wheel.arm(self, engine.wheel.now + self.port.settings.head_timeout)

    cdef int take_address(self, bytes text) except -1:
        """Who the peer is, in the one spelling of inetaddr.pyx."""
        cdef uint8_t address[INET_SIZE]
        self.peer = text
        self.internal = inet_read_bytes(text, address) and inet_is_private(address)
        self.own_lines = b"x-forwarded-for: %b\r\nx-forwarded-proto: %b\r\n%b" % (
            text,
            b"https" if self.tls else b"http",
            b"x-edge-internal: true\r\n" if self.internal else b"x-edge-external-address: %b\r\n" % text,
        )
        return 0

    # --- bytes from the client -------------------------------------------------------------------------------------

    def buffer_updated(self, Py_ssize_t n):
        cdef const uint8_t *data = self.engine.read_data
        cdef ssize_t used
        self.engine.wheel.refresh()
        self.engine.count_n(G_DOWNSTREAM_BYTES_RECEIVED, n)
        self.bulk = (
            n >= READ_SMALL and not self.read_paused and self.exchange is not None and self.exchange.up is not None
            and self.exchange.up.has_room()
        )
        if self.closed:
            return
        if self.pending_len:
            self.keep(data, n)
            used = self.process(self.pending, self.pending_len)
            self.consume(used)
        else:
            used = self.process(data, n)
            if used < n:
                self.keep(data + used, n - used)
        self.hold_back()

    def _go_on(self):
        """Requests that came while another one was in flight."""
        cdef ssize_t used
        self.scheduled = False
        if self.closed or not self.pending_len or self.write_paused:
            return
        used = self.process(self.pending, self.pending_len)
        self.consume(used)
        if not self.hold_back():
            self.resume()

    cdef bint hold_back(self) except -1:
        """Stop reading while more is kept than a client needs to send ahead."""
        if self.pending_len < PIPELINE_LIMIT or not (self.state == D_WAIT or self.write_paused):
            return False
        self.pause()
        return True

    cdef int schedule(self) except -1:
        if not self.scheduled:
            self.scheduled = True
            self.engine.loop.call_soon(self._go_on)
        return 0

    cdef ssize_t process(self, const uint8_t *data, size_t n) except -1:
        """Consume what can be consumed now; returns how much."""
        cdef size_t at = 0, length
        cdef ssize_t used
        cdef iovec iov
        self.processing = True
        while not self.closed:
            if self.state == D_HEAD:
                if at == n or self.write_paused:  # who does not read answers gets no further ones
                    break
                used = self.on_head(data + at, n - at)
                if used == 0:
                    break
                at += used
            elif self.state == D_LENGTH:
                length = n - at
                if length > self.left:
                    length = <size_t>self.left
                if length == 0:
                    break
                if self.witness is not None and not self.witness.body(data + at, length):
                    self.engine.count(G_PARSER_DISAGREEMENTS)
                    self.refuse(400, DISAGREE)
                    break
                self.left -= length
                self.wants_continue = False
                if self.exchange is not None:
                    iov.iov_base = <void *>(data + at)
                    iov.iov_len = length
                    self.exchange.request_body(&iov, 1, length)
                at += length
                if self.left == 0 and self.state == D_LENGTH:
                    self.on_request_end()
            elif self.state == D_CHUNKED:
                if at == n:
                    break
                at += self.on_chunks(data + at, n - at)
            elif self.state == D_WAIT:
                break
            elif self.state == D_TUNNEL:
                if at < n and self.exchange is not None:
                    iov.iov_base = <void *>(data + at)
                    iov.iov_len = n - at
                    self.exchange.request_body(&iov, 1, n - at)
                at = n
                break
            elif self.state == D_DISCARD:
                self.discarded += n - at
                if self.discarded > LINGER_BYTES:
                    self.shut(True)
                at = n
                break
            else:
                used = self.on_preamble(data + at, n - at)
                if used == 0:
                    break
                at += used
        self.processing = False
        if self.closed:
            return n
        if self.exchange is not None:
            if at == n:
                self.send_continue(self.exchange)
            self.exchange.flush()
        return at

    cdef ssize_t on_head(self, const uint8_t *data, size_t n) except -1:
        """One request head: start its exchange. Returns its length; 0 when more bytes are needed or the request was refused."""
        cdef Engine engine = self.engine
        cdef ef_head *head = self.partial
        cdef ssize_t length
        cdef int verdict
        cdef Exchange ex
        if head == NULL:
            head = &engine.request_head
            ef_head_reset(head)
        length = ef_head_scan_request(head, &self.port.settings.request_limits, data, n)
        if length == EF_NEED_MORE:
            if self.partial == NULL:
                self.partial = <ef_head *>malloc(sizeof(ef_head))
                if self.partial == NULL:
                    raise MemoryError
                memcpy(self.partial, head, sizeof(ef_head))
                engine.wheel.arm(self, engine.wheel.now + self.port.settings.head_timeout)
            return 0
        if length < 0:
            engine.count(G_HEAD_REFUSED + head.error - 1)
            self.refuse(head.status, ef_head_error_text(head.error))
            return 0
        if self.partial != NULL:
            memcpy(&engine.request_head, self.partial, sizeof(ef_head))
            head = &engine.request_head
            free(self.partial)
            self.partial = NULL
        if head.absolute_scheme and (head.absolute_scheme == 2) != self.tls:
            self.refuse(400, "the target's scheme is not the connection's")
            return 0
        self.port.approach(data + head.host_off, head.host_len)
        self.witness = engine.request_witness()
        verdict = self.witness.head(data, length, head, False)
        if verdict == 0:
            engine.count(G_PARSER_DISAGREEMENTS)
            self.drop_witness()
            self.refuse(400, DISAGREE)
            return 0
        if head.body == EF_BODY_NONE:
            if verdict == 1:
                self.keep_witness()
            else:
                self.drop_witness()
            self.state = D_WAIT
        elif head.body == EF_BODY_LENGTH:
            self.left = head.content_length
            self.state = D_LENGTH
        else:
            ef_chunk_reset(&self.chunk)
            self.state = D_CHUNKED
        if verdict == 2 and head.keep_alive:  # an upgrade that the parser followed and we do not
            self.drop_witness()
        self.port.approach_host()
        self.head_method = head.method == EF_M_HEAD
        self.requests += 1
        if not head.keep_alive or self.requests >= self.port.settings.max_requests or engine.draining:
            self.closing = True
            self.asked_to_close = not head.keep_alive
        engine.wheel.disarm(self)
        self.wants_continue = head.expect_continue
        ex = self.exchange = Exchange.__new__(Exchange, self)
        ex.begin(data, head)
        if self.state == D_WAIT and self.exchange is ex:
            ex.request_end()
        return length

    cdef ssize_t on_chunks(self, const uint8_t *data, size_t n) except -1:
        """Chunked body: all data of this read goes on as one piece."""
        cdef iovec iov[MAX_IOV]
        cdef int pieces = 0, result, verdict
        cdef size_t at = 0, used, length, total = 0
        cdef const uint8_t *span
        while at < n and self.state == D_CHUNKED:
            verdict = 1
            result = ef_chunk_feed(&self.chunk, data + at, n - at, &used, &span, &length)
            if result != EF_BAD and used and self.witness is not None:
                verdict = self.witness.chunks(data + at, used, &self.chunk)
                if verdict == 2:
                    self.drop_witness()
                elif verdict == 0:
                    self.engine.count(G_PARSER_DISAGREEMENTS)
                    result = EF_BAD
            at += used
            self.wants_continue = False
            if result == EF_CHUNK_DATA:
                iov[pieces].iov_base = <void *>span
                iov[pieces].iov_len = length
                pieces += 1
                total += length
                if pieces == MAX_IOV:
                    if self.exchange is not None:
                        self.exchange.request_body(iov, pieces, total)
                    pieces = 0
                    total = 0
            elif result == EF_BAD:
                self.engine.count(G_BODY_MALFORMED)
                self.refuse(400, ef_chunk_error_text(self.chunk.error) if verdict else DISAGREE)
                return n
            else:
                if pieces and self.exchange is not None:
                    self.exchange.request_body(iov, pieces, total)
                pieces = 0
                if result == EF_CHUNK_DONE:
                    if self.state == D_CHUNKED:
                        self.on_request_end()
                    return at
                break
        if pieces and self.exchange is not None:
            self.exchange.request_body(iov, pieces, total)
        return at

    cdef int on_request_end(self) except -1:
        cdef Exchange ex = self.exchange
        if self.witness is not None:
            if not self.witness.complete:
                self.engine.count(G_PARSER_DISAGREEMENTS)
                self.drop_witness()
                return self.refuse(400, DISAGREE)
            if not self.closing:
                self.keep_witness()
            else:
                self.drop_witness()
        self.state = D_WAIT
        if ex is not None:
            return ex.request_end()
        return self.exchange_done(None)

    cdef ssize_t on_preamble(self, const uint8_t *data, size_t n) except -1:
        """PROXY protocol v1 or v2 before the first request."""
        length, address, port = parse_preamble(data[:n if n < PROXY_V2_MAX else PROXY_V2_MAX])
        if length == PREAMBLE_MORE:
            return 0
        if length == PREAMBLE_BAD or (length == PREAMBLE_ABSENT and self.port.settings.proxy_protocol == 2):
            self.engine.count(G_PROXY_PROTOCOL_REFUSED)
            self.shut(True)
            return 0
        if address is not None:
            self.take_address(address)
            self.peer_port = port
        self.state = D_HEAD
        return self.on_head(data, n) if length == PREAMBLE_ABSENT else length

    def eof_received(self):
        cdef Exchange ex = self.exchange
        if ex is None or self.closed or self.state == D_DISCARD:
            return False
        if self.state == D_TUNNEL:
            ex.tunnel_closed()
            return False
        ex.client_gone()  # nobody waits any more; that it only stopped sending cannot be told apart (as nginx and Envoy)
        return False

    def connection_lost(self, exc):
        cdef Exchange ex = self.exchange
        self.closed = True
        self.engine.connections.discard(self)
        self.engine.count_down(G_CONNECTIONS_ACTIVE)
        self.engine.wheel.disarm(self)
        if ex is not None:
            ex.client_gone()
        self.exchange = None
        self.drop_witness()
        self.transport = None
        self.release_memory()

    cdef int on_deadline(self, int64_t now) except -1:
        if self.closed:
            return self.watch_flush()
        if self.state == D_DISCARD:
            if self.flushing():  # the second begins when the answer is out
                return self.engine.wheel.arm(self, now + LINGER_MS)
            return self.shut(True)
        if self.state == D_HEAD and not self.write_paused and (self.pending_len or (self.requests == 0 and not self.engine.draining)):
            self.engine.count(G_HEAD_TIMEOUTS)
            if self.partial == NULL:
                ef_head_reset(&self.engine.request_head)  # not a byte has come: no method
            return self.refuse(408, "the request head came too slowly")
        return self.shut(False)

    def resume_writing(self):
        cdef Exchange ex = self.exchange
        self.write_paused = False
        if ex is not None:
            if ex.up is not None:
                ex.up.resume()
        elif self.pending_len:
            self.schedule()
        else:
            self.resume()

    # --- answers ---------------------------------------------------------------------------------------------------

    cdef int refuse(self, int status, const char *reason) except -1:
        """Answer a message that is not HTTP as we know it, and close."""
        cdef bytes text = <bytes>reason
        cdef ef_head *head = self.partial if self.partial != NULL else &self.engine.request_head
        cdef bint is_head = head.method == EF_M_HEAD if self.state == D_HEAD else self.head_method
        cdef Exchange ex = self.exchange
        if ex is not None and ex.started_response:  # an answer is under way: a second one would be part of it
            return ex.abort(F_INVALID)
        self.closing = True
        self.partial_done()
        self.exchange = None
        if ex is not None:
            ex.client_gone()
        self.answer(status, b"upgrade: HTTP/1.1\r\n" if status == 426 else b"", text + b"\n", None, is_head)
        log_refused(self.engine, self, status, text)
        return self.linger()

    cdef int exchange_done(self, Exchange ex) except -1:
        """The exchange has ended; what comes next on this connection?"""
        if self.exchange is not ex:  # it was let go of already
            return 0
        self.exchange = None
        if self.closed:
            return 0
        if self.state == D_LENGTH or self.state == D_CHUNKED:  # the client is still sending
            if self.closing or self.state == D_CHUNKED or self.left > DISCARD_LIMIT:
                self.closing = True
                return self.linger()
            self.engine.wheel.arm(self, self.engine.wheel.now + self.port.settings.head_timeout)
            return self.resume()
        if self.state == D_DISCARD:
            return 0
        if self.closing or self.engine.draining:
            if self.tls and self.asked_to_close and not self.pending_len:
                return self.shut(False)
            return self.linger()
        self.state = D_HEAD
        if self.pending_len and not self.processing:
            self.schedule()
        else:
            self.resume()
        return self.engine.wheel.arm(self, self.engine.wheel.now + self.port.settings.idle_timeout)
