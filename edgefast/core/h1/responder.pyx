# Responder: writes answers to a client's connection: the proxy's own, and the backend's as it comes.
#
# In: the answer of an exchange. Out: HTTP/1.1 heads and framed bodies, gathered into one write per read of the backend. It reads nothing;
# H1Server is its other half. A client of HTTP/1.0 gets the status line of HTTP/1.1 (RFC 9110 2.5), but nothing that came with it: no chunks,
# trailers or 1xx. A body without a length ends with its connection.

cdef dict STATUS_LINES = {}
# What RFC 9110 calls them now, whatever Python this is.
cdef dict PHRASES = {
    413: "Content Too Large", 414: "URI Too Long", 416: "Range Not Satisfiable", 422: "Unprocessable Content",
}


cdef bytes status_line(int status):
    line = STATUS_LINES.get(status)
    if line is None:
        try:
            phrase = PHRASES.get(status) or HTTPStatus(status).phrase
        except ValueError:
            phrase = ""
        line = STATUS_LINES[status] = f"HTTP/1.1 {status} {phrase}\r\n".encode()
    return line


cdef bytes HTTP_1_1 = b"HTTP/1.1"
cdef bytes HTTP_1_0 = b"HTTP/1.0"


cdef bint needs_length(unsigned method, ef_head *head) noexcept:
    """Without one it would not end here (RFC 9112 6.3): HTTP/2 has ended it with its head."""
    cdef uint16_t status = head.response_status, i
    if method == EF_M_HEAD or status < 200 or status == 204 or status == 304:
        return False
    for i in range(head.n_spans):
        if head.spans[i].id == EF_H_CONTENT_LENGTH:
            return False
    return True


cdef class H1Responder(Inbound):
    cdef int answer(self, int status, bytes lines, bytes body, bint is_head) except -1:
        cdef Exchange ex = self.exchange  # None: to a message that never became a request
        if ex is not None and (
            self.state == D_CHUNKED or (self.state == D_LENGTH and (self.left > DISCARD_LIMIT or self.wants_continue))
        ):
            self.closing = True
        self.wants_continue = False
        self.engine.gather.reset()
        parts = [status_line(status), first_lines(self.engine, ex), lines]
        if self.closing:
            parts.append(b"connection: close, upgrade\r\n" if status == 426 else b"connection: close\r\n")
        elif self.is_http10:
            parts.append(b"connection: keep-alive\r\n")
        if body:
            parts.append(b"%bcontent-length: %d\r\n\r\n" % (type_line(lines), len(body)))
            if not is_head:
                parts.append(body)
        elif status == 429 and not self.is_http10:
            parts.append(b"transfer-encoding: chunked\r\n\r\n" if is_head else b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n")
        elif status == 204 or status == 304:
            parts.append(b"\r\n")
        else:
            parts.append(b"content-length: 0\r\n\r\n")
        text = b"".join(parts)
        if ex is not None and self.port.log_wants_answer:
            self.engine.observer.keep_answer(ex, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
        self.engine.count_n(G_DOWNSTREAM_BYTES_SENT, PyBytes_GET_SIZE(text))
        self.connection.end_follows = self.closing
        return self.connection.send(PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))

    cdef int send_continue(self) except -1:
        if not self.wants_continue or self.state == D_WAIT:
            return 0
        self.wants_continue = False
        self.engine.count_n(G_DOWNSTREAM_BYTES_SENT, 25)
        return self.connection.send(<const char *>b"HTTP/1.1 100 Continue\r\n\r\n", 25)

    cdef int response_info(self, const uint8_t *base, ef_head *head) except -1:
        cdef Out *out = &self.engine.out
        if self.is_http10:  # it may take it for the answer (RFC 9110 15.2)
            return 0
        self.response_flush()
        out.size = 0
        out_reserve(out, head.head_len + 64)
        out_raw(out, <const char *>b"HTTP/1.1 ", 9)
        write_status_rest(out, base, head)
        write_spans(
            out, base, head, EF_SPAN_HOP | EF_SPAN_NOMINATED, <uint32_t>1 << EF_H_CONTENT_LENGTH, None, None
        )
        out_raw(out, <const char *>b"\r\n", 2)
        self.engine.count_n(G_DOWNSTREAM_BYTES_SENT, out.size)
        return self.connection.send(out.data, out.size)

    cdef int response_head(self, const uint8_t *base, ef_head *head) except -1:
        cdef Engine engine = self.engine
        cdef Exchange ex = self.exchange
        cdef Out *out = &engine.out
        cdef uint16_t i
        self.chunked_response = head.body == EF_BODY_CHUNKED or head.body == EF_BODY_EOF
        if self.chunked_response and self.is_http10:
            self.chunked_response = False
            self.closing = True
            self.connection.body_end = BODY_RUNS
        if engine.draining:
            self.closing = True
        self.wants_continue = False
        if head.response_status == 101:
            write_response_head(ex, base, head, <uint32_t>1 << EF_H_CONTENT_LENGTH)  # no length, not even 0 (RFC 9110 8.6)
            out_raw(out, <const char *>b"connection: upgrade\r\n", 21)
            for i in range(head.n_spans):
                if head.spans[i].id == EF_H_UPGRADE:
                    out_reserve(out, head.spans[i].val_len + 64)
                    out_raw(out, <const char *>b"upgrade: ", 9)
                    out_raw(out, base + head.spans[i].val_off, head.spans[i].val_len)
                    out_raw(out, <const char *>b"\r\n", 2)
        else:
            write_response_head(ex, base, head, 0)
            if self.chunked_response:
                out_raw(out, <const char *>b"transfer-encoding: chunked\r\n", 28)
            elif head.body == EF_BODY_NONE and needs_length(ex.method, head):
                out_raw(out, <const char *>b"content-length: 0\r\n", 19)
            if self.closing:
                out_raw(out, <const char *>b"connection: close\r\n", 19)
            elif self.is_http10:
                out_raw(out, <const char *>b"connection: keep-alive\r\n", 24)
        out_raw(out, <const char *>b"\r\n", 2)
        if self.port.log_wants_answer:
            self.engine.observer.keep_answer(ex, out.data, out.size)
        engine.gather.reset()
        engine.gather.add(self.connection, out.data, out.size)
        if head.response_status == 101:
            self.state = D_TUNNEL
            self.closing = True
            self.connection.disarm()
            if self.connection.pending.len:
                self.connection.go_on()
            self.connection.resume()  # also who was held back: bytes of a tunnel are no requests to come
        return 0

    cdef int response_body(self, const uint8_t *data, size_t n) except -1:
        if self.chunked_response:
            return self.engine.gather.add_chunked(self.connection, data, n)
        return self.engine.gather.add(self.connection, data, n)

    cdef int response_flush(self) except -1:
        return self.engine.gather.flush(self.connection)

    cdef int response_trailers(self, const uint8_t *lines, size_t n) except -1:
        """There is a place for them behind the last chunk alone, and for clients that look there (RFC 9110 10.1.4)."""
        if not self.chunked_response or not self.takes_trailers:
            return 0
        self.chunked_response = False
        return self.engine.gather.add_trailers(self.connection, lines, n)

    cdef int response_end(self) except -1:
        if self.chunked_response:
            self.engine.gather.add_last_chunk(self.connection)
            self.chunked_response = False
        if self.connection.body_end == BODY_RUNS:
            self.connection.body_end = BODY_GIVEN
        self.connection.end_follows = self.closing
        return self.engine.gather.flush(self.connection)

    cdef bint takes_end(self, bint trailers) noexcept:
        return self.chunked_response and (self.takes_trailers or not trailers)

    cdef bint has_room(self) noexcept:
        return self.connection.has_room()

    cdef size_t untaken(self) noexcept:
        return self.connection.untaken()

    cdef int pause(self) except -1:
        return self.connection.pause()

    cdef int resume(self) except -1:
        if self.connection.pending.len >= PIPELINE_LIMIT and self.holds_back():
            return 0  # what is kept is for requests to come: `done` goes on with it
        return self.connection.resume()

    cdef bint paused(self) noexcept:
        return self.connection.read_paused

    cdef int refuse_more(self) except -1:
        self.closing = True
        return 0

    cdef int abort(self, Cut why) except -1:
        """A reset, whatever the reason: a proper end would lie."""
        self.engine.gather.reset()
        self.closing = True
        return self.connection.shut(True)

    cdef int learn_ends(self) except -1:
        self.peer.local = address_of(self.connection, True)
        self.peer.remote = address_of(self.connection, False)
        return 0

    cdef int64_t inactive_since(self, bint busy) except -2:
        cdef Connection connection = self.connection
        cdef int64_t patience = self.port.settings.head_timeout
        if self.exchange is not None:
            return (<Exchange>self.exchange).inactive_since() if busy else -1
        if connection.unsent():  # the end of an answer
            return connection.took_at if busy else -1
        if self.state == D_DISCARD:
            patience = LINGER_MS
        elif self.state == D_HEAD and (<H1Server>self).requests and not connection.pending.len:
            patience = self.port.settings.idle_timeout
        return max(connection.deadline - patience, <int64_t>0) if connection.deadline else -1

    cdef int preempt(self) except -1:
        cdef Exchange ex = self.exchange
        cdef Connection connection = self.connection
        self.engine.count(G_CONNECTIONS_GAVE_WAY)
        release_slot(self.peer, connection)
        self.closing = True
        if ex is not None and not connection.closed:
            return ex.preempt()
        return connection.shut(connection.closed or connection.unsent() > 0)

    cdef int linger(self) except -1:
        """No more answers: tell the client, read and drop what it still sends for a moment, then close. A close while bytes
        still come in would reset the connection and could take the answer with it (RFC 9112 9.6)."""
        cdef Connection connection = self.connection
        if connection.closed:
            return 0
        if connection.body_end == BODY_RUNS:
            return connection.shut(True)
        self.state = D_DISCARD
        self.discarded = 0
        connection.resume()
        connection.end_writes()
        connection.disarm()
        return connection.arm(LINGER_MS)
