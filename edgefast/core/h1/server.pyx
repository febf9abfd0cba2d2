# Server: HTTP/1.1 with clients: request bytes in, one Exchange at a time out, its answer back in order.
#
# Reads go through the worker's one buffer; only an incomplete head or early requests are copied. A fault in framing is answered once, with
# `connection: close`, and nothing after it is read (docs/reference/http1.md). Bodies are streamed; reading stops when the other side does
# not read.

cdef const char *DISAGREE = "the two parsers disagree about this message"


cdef H1Server make_server(Engine engine, PortTable port, bint tls):
    cdef H1Server server = H1Server.__new__(H1Server)
    server.engine = engine
    server.port = port
    server.peer = make_peer(port, tls)
    server.protocol = HTTP_1_1
    return server


cdef class H1Server(H1Responder):
    def __dealloc__(self):
        free(self.partial)
        out_free(&self.trailers)

    cdef int on_open(self) except -1:
        cdef Engine engine = self.engine
        cdef PortTable port
        cdef NetAddress client
        if not self.port.listeners:
            move_session(self)
        port = self.port
        self.connection.counted = &engine.stat.globals[G_DOWNSTREAM_BYTES_RECEIVED]
        engine.count(G_CONNECTIONS_TOTAL)
        engine.count(G_CONNECTIONS_ACTIVE)
        engine.connections[self] = None
        trim_rose(&engine.trim.connections, len(engine.connections))
        if port.settings is not None:
            self.connection.buffer_bytes = port.settings.buffer_bytes
        if self.peer.tls:
            engine.count(G_CONNECTIONS_TLS_TOTAL)
            engine.count(G_HANDSHAKES_DONE + self.peer.take_wire(self.connection.wire))
        if self.peer.address is None:
            self.connection.learn_end(False, &client)  # a unix socket's is here
            self.peer.take_host(client.host) if client.kind == ADDRESS_INET else self.peer.take_address(b"127.0.0.1")
        if port.settings is None or not take_slot(engine, port, self.peer, self.connection):
            engine.count(G_CONNECTIONS_REFUSED)
            return self.connection.shut(True)
        self.state = D_PROXY if port.proxy_protocol and not self.peer.tls else D_HEAD
        return self.engine.http2.switch(self) if self.state == D_HEAD and self.engine.http2.is_agreed(self) else self.connection.arm(port.settings.head_timeout)

    # --- bytes from the client -------------------------------------------------------------------------------------

    cdef bint takes_bulk(self) noexcept:
        return self.exchange is not None and self.exchange.forwards_bulk()

    cdef bint holds_back(self) noexcept:
        """A client need not send further ahead."""
        return self.state == D_WAIT or self.write_paused

    cdef ssize_t received(self, const uint8_t *data, size_t n) except -1:
        cdef size_t at = 0, length
        cdef ssize_t used
        cdef iovec iov
        cdef int heads = 0
        cdef Connection connection = self.connection
        cdef Exchange ex
        self.handing = True
        while not connection.closed:
            if self.state == D_HEAD:
                if at == n or self.write_paused:  # who does not read answers gets no further ones
                    break
                if heads == PIPELINE_TURN:  # answered at once, each of them: others come first, and what follows stays with the kernel
                    connection.go_on_later()
                    connection.pause()
                    break
                heads += 1
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
                if self.parser_check is not None and not self.parser_check.body(data + at, length):
                    self.engine.count(G_PARSER_DISAGREEMENTS)
                    self.refuse(400, DISAGREE)
                    break
                self.left -= length
                self.wants_continue = False
                iov.iov_base = <void *>(data + at)
                iov.iov_len = length
                self.on_body(&iov, 1, length, <int64_t>self.left)
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
                if at < n:
                    iov.iov_base = <void *>(data + at)
                    iov.iov_len = n - at
                    self.on_body(&iov, 1, n - at, -1)
                at = n
                break
            elif self.state == D_DISCARD:
                self.discarded += n - at
                if self.discarded > LINGER_BYTES:
                    connection.shut(True)
                else:
                    connection.rest()
                at = n
                break
            else:
                used = self.on_preamble(data + at, n - at)
                if used == 0:
                    break
                at += used
        self.handing = False
        if connection.closed:
            return n
        ex = self.exchange
        if ex is not None:
            if at == n and self.wants_continue:
                ex.allow_body()
            ex.flush()
        return at

    cdef int on_body(self, iovec *iov, int n, size_t total, int64_t left) except -1:
        cdef Exchange ex = self.exchange  # which lets go of it when it ends
        if ex is not None:
            ex.request_body(iov, n, total, left)
        return 0

    cdef ssize_t on_head(self, const uint8_t *data, size_t n) except -1:
        """One request head: start its exchange. Returns its length; 0 when more bytes are needed or the request was refused."""
        cdef Engine engine = self.engine
        cdef ef_head *head = self.partial
        cdef ssize_t length
        cdef uint64_t digest
        cdef int decision = 1
        cdef Exchange ex
        cdef const uint8_t *sent = data
        if self.requests == 0 and head == NULL and n and (data[0] == c"P" or self.peer.tls) and self.engine.http2.may_switch(self, data, n):
            return 0
        if head == NULL:
            head = &engine.request_head
            ef_head_reset(head)
        length = ef_head_scan_request(head, &self.port.settings.request_limits, data, n)
        if length == EF_NEED_MORE:
            if partial_head_keep(&self.partial, head):
                self.connection.arm(self.port.settings.head_timeout)
            return 0
        if length < 0:
            engine.count(G_HEAD_REFUSED + head.error - 1)
            self.refuse(head.status, ef_head_error_text(head.error))
            return 0
        head = &engine.request_head
        partial_head_done(&self.partial, head)
        if head.absolute_scheme and (head.absolute_scheme == 2) != self.peer.tls:
            self.refuse(400, "the target's scheme is not the connection's")
            return 0
        if head.host_len == 0:
            data = self.add_host(sent, head)
            if data == NULL:
                return 0
        if not self.port.listeners:
            move_session(self)
        self.port.approach(data + head.host_off, head.host_len)
        digest = hash_request(sent, length, head)
        if digest == 0 or digest != self.agreed_head:
            self.parser_check = request_parser_check(engine)
            decision = self.parser_check.head(sent, length, head, False)
            self.agreed_head = digest if decision == 1 else 0
        if decision == 0:
            engine.count(G_PARSER_DISAGREEMENTS)
            drop_parser_check(self.parser_check)
            self.parser_check = None
            self.refuse(400, DISAGREE)
            return 0
        if head.body == EF_BODY_NONE:
            if decision == 1:
                release_parser_check(engine, self.parser_check)
            else:
                drop_parser_check(self.parser_check)
            self.parser_check = None
            self.state = D_WAIT
        elif head.body == EF_BODY_LENGTH:
            self.left = head.content_length
            self.state = D_LENGTH
        else:
            ef_chunk_reset(&self.chunk)
            self.trailers.size = 0
            self.nominates = head.nominates
            self.state = D_CHUNKED
        if decision == 2:  # an upgrade that the parser followed and we do not
            drop_parser_check(self.parser_check)
            self.parser_check = None
        self.port.approach_host()
        self.head_method = head.method == EF_M_HEAD
        if self.is_http10 == head.version_minor:  # not the version of the request before
            self.is_http10 = not self.is_http10
            self.protocol = HTTP_1_0 if self.is_http10 else HTTP_1_1
        if self.is_http10:
            engine.count(G_HTTP10_REQUESTS)
        self.requests += 1
        if not head.keep_alive or self.requests >= self.port.settings.max_requests or engine.draining:
            self.closing = True
            self.asked_to_close = not head.keep_alive
        self.connection.disarm()
        self.wants_continue = head.expect_continue
        self.takes_trailers = head.te_trailers
        ex = self.exchange = make_exchange(self)
        if head.notes & EF_NOTE_HOST_DOT:
            ef_head_drop_host_dot(head, <uint8_t *>data)
        ex.begin(data, head)
        if self.state == D_WAIT and self.exchange is ex:
            ex.request_end()
        return length

    cdef const uint8_t *add_host(self, const uint8_t *data, ef_head *head) except? NULL:
        """Return an HTTP/1.0 head with the Host that it lacked, scanned again, or NULL after a refusal. The offsets of method and target are the same."""
        cdef Engine engine = self.engine
        cdef bytes host = self.port.settings.default_host
        cdef Out *out = &engine.host_head
        out.size = 0
        out_reserve(out, head.head_len + max(<size_t>head.authority_len, <size_t>PyBytes_GET_SIZE(host)) + EF_HOST_LINE)
        out.size = ef_head_add_host(head, data, <const uint8_t *>PyBytes_AS_STRING(host), PyBytes_GET_SIZE(host), out.data)
        ef_head_reset(head)
        if ef_head_scan_request(head, &self.port.settings.request_limits, out.data, out.size) < 0:
            engine.count(G_HEAD_REFUSED + head.error - 1)
            self.refuse(head.status, ef_head_error_text(head.error))
            return NULL
        return out.data

    cdef ssize_t on_chunks(self, const uint8_t *data, size_t n) except -1:
        """Chunked body: all data of this read goes on as one piece."""
        cdef iovec iov[MAX_IOV]
        cdef int pieces = 0, result, decision
        cdef size_t at = 0, used, length, total = 0
        cdef const uint8_t *span
        while at < n and self.state == D_CHUNKED:
            decision = 1
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
            self.wants_continue = False
            if result == EF_CHUNK_DATA:
                iov[pieces].iov_base = <void *>span
                iov[pieces].iov_len = length
                pieces += 1
                total += length
                if pieces == MAX_IOV:
                    self.on_body(iov, pieces, total, -1)
                    pieces = 0
                    total = 0
            elif result == EF_CHUNK_TRAILER:
                out_reserve(&self.trailers, length)
                out_raw(&self.trailers, span, length)
            elif result == EF_BAD:
                self.engine.count(G_BODY_MALFORMED)
                self.refuse(400, ef_chunk_error_text(self.chunk.error) if decision else DISAGREE)
                return n
            else:
                if pieces:
                    self.on_body(iov, pieces, total, -1)
                pieces = 0
                if result == EF_CHUNK_DONE:
                    if self.state == D_CHUNKED:
                        self.on_request_end()
                    return at
                break
        if pieces:
            self.on_body(iov, pieces, total, -1)
        return at

    cdef int end_trailers(self) except -1:
        """They are complete. What Connection names does not go on, here either (RFC 9110 7.6.1): then none of them does."""
        cdef Exchange ex = self.exchange
        if ex is not None and not self.nominates:
            ex.request_trailers(self.trailers.data, self.trailers.size)
        out_free(&self.trailers)
        return 0

    cdef int on_request_end(self) except -1:
        cdef Exchange ex = self.exchange
        if self.parser_check is not None:
            if not self.parser_check.complete:
                self.engine.count(G_PARSER_DISAGREEMENTS)
                drop_parser_check(self.parser_check)
                self.parser_check = None
                return self.refuse(400, DISAGREE)
            release_parser_check(self.engine, self.parser_check)
            self.parser_check = None
        self.state = D_WAIT
        if self.trailers.size:
            self.end_trailers()
        return ex.request_end() if ex is not None else self.done(None)

    cdef ssize_t on_preamble(self, const uint8_t *data, size_t n) except -1:
        """PROXY protocol v1 or v2 before the first request."""
        length, address, port = parse_preamble(data[:n if n < PROXY_V2_MAX else PROXY_V2_MAX])
        if is_preamble_refused(length, self.port.settings.proxy_protocol, self.port.settings.senders.has_peer(self.connection)):
            self.engine.count(G_PROXY_PROTOCOL_REFUSED)
            return self.connection.shut(True)
        if length == PREAMBLE_MORE:
            return 0
        if address is not None:
            self.peer.take_address(address)
            self.peer.address_port = port
            change_client(self.peer, self.connection)
        self.state = D_HEAD
        return self.on_head(data, n) if length == PREAMBLE_ABSENT else length

    cdef int on_eof(self) except -1:
        cdef Exchange ex = self.exchange
        if ex is not None and self.state == D_TUNNEL:
            ex.tunnel_closed()
        elif ex is not None and self.state != D_DISCARD:
            ex.client_gone()  # nobody waits any more; that it only stopped sending cannot be told apart (as nginx and Envoy)
        return self.connection.shut(False)

    cdef int on_hangup(self) except -1:
        return self.connection.shut(True)  # a backend that takes no more is not worth waiting for: nobody would read its answer

    cdef int on_lost(self) except -1:
        cdef Exchange ex = self.exchange
        forget_connection(self.engine, self)
        release_slot(self.peer, self.connection)
        self.engine.count_down(G_CONNECTIONS_ACTIVE)
        if ex is not None:
            ex.client_gone()
        self.exchange = None
        drop_parser_check(self.parser_check)
        self.parser_check = None
        partial_head_free(&self.partial)
        return self.engine.trim.fell(&self.engine.trim.connections, len(self.engine.connections))

    cdef int on_deadline(self, int64_t now) except -1:
        if self.state == D_DISCARD:
            if self.connection.flushing():  # the second begins when the answer is out
                return self.connection.arm(LINGER_MS)
            return self.connection.shut(True)
        if self.state == D_HEAD and not self.write_paused and (
            self.connection.pending.len or (self.requests == 0 and not self.engine.draining)
        ):
            self.engine.count(G_HEAD_TIMEOUTS)
            if self.partial == NULL:
                ef_head_reset(&self.engine.request_head)  # not a byte has come: no method
            return self.refuse(408, "the request head came too slowly")
        return self.connection.shut(False)

    cdef int on_writable(self, bint writable) except -1:
        cdef Exchange ex = self.exchange
        self.write_paused = not writable
        if not writable:
            return 0
        if ex is not None:
            if self.state == D_TUNNEL and self.connection.pending.len and not self.connection.read_paused:
                self.connection.go_on()  # the first bytes of a tunnel, which came while nothing could be sent
            return ex.on_down_writable()
        if self.connection.pending.len:
            return self.connection.go_on()
        return self.connection.resume()

    cdef int retire(self, object port, bint outdated) except -1:
        if port is not None:
            if self.port is not port:
                return 0
            self.closing = True
        if outdated:
            start_drain_timer(self.engine, self.port, self)
        if self.exchange is None and self.state == D_HEAD and not self.connection.pending.len and not self.connection.closed:
            self.connection.disarm()
            self.connection.arm(IDLE_GRACE_MS)
        return 0

    cdef int stop(self, bint abort) except -1:
        if abort:
            return self.connection.shut(True)
        return self.connection.shut(False) if self.exchange is None else 0

    # --- answers ---------------------------------------------------------------------------------------------------

    cdef int refuse(self, int status, const char *reason) except -1:
        """Answer a message that is not HTTP as we know it, and close."""
        cdef bytes text = <bytes>reason
        cdef ef_head *head = self.partial if self.partial != NULL else &self.engine.request_head
        cdef bint is_head = head.method == EF_M_HEAD if self.state == D_HEAD else self.head_method
        cdef Exchange ex = self.exchange
        if ex is not None and ex.retry.state == TRY_ANSWERED:  # an answer is under way: a second one would be part of it
            return ex.abort(F_INVALID)
        self.closing = True
        partial_head_free(&self.partial)
        self.exchange = None
        if ex is not None:
            ex.client_gone()
        self.answer(status, b"upgrade: HTTP/1.1\r\n" if status == 426 else b"", text + b"\n", is_head)
        self.engine.observer.log_refused(self.peer, status, text)
        return self.linger()

    cdef int done(self, Exchange ex) except -1:
        """What comes next on this connection?"""
        cdef Connection connection = self.connection
        if self.exchange is not ex:  # it was let go of already
            return 0
        self.exchange = None
        if connection.closed:
            return 0
        if self.state == D_LENGTH or self.state == D_CHUNKED:  # the client is still sending
            if self.closing or self.state == D_CHUNKED or self.left > DISCARD_LIMIT:
                self.closing = True
                return self.linger()
            connection.arm(self.port.settings.head_timeout)
            return connection.resume()
        if self.state == D_DISCARD:
            return 0
        if self.closing or self.engine.draining:
            if self.peer.tls and self.asked_to_close and not connection.pending.len:
                return connection.shut(False)
            return self.linger()
        self.state = D_HEAD
        if connection.pending.len and not self.handing:
            connection.go_on()
        else:
            connection.resume()
        return connection.arm(self.port.settings.idle_timeout)
