# Answers on a client's connection: the proxy's own, and the backend's as it comes.
#
# In: what an exchange wants to say. Out: HTTP/1.1 heads and framed bodies, gathered into one write per read of the backend. It knows
# nothing of requests; Downstream is its other half.

cdef dict STATUS_LINES = {}


cdef bytes status_line(int status):
    line = STATUS_LINES.get(status)
    if line is None:
        try:
            phrase = HTTPStatus(status).phrase
        except ValueError:
            phrase = ""
        line = STATUS_LINES[status] = f"HTTP/1.1 {status} {phrase}\r\n".encode()
    return line


cdef class Responder(Connection):
    cdef int schedule(self) except -1:
        """Go on with what was received too early; Downstream knows how."""
        raise NotImplementedError

    cdef int answer(self, int status, bytes lines, bytes body, Exchange ex, bint is_head) except -1:
        """The proxy's own answer. An empty body is `content-length: 0`, for 429 an empty chunked body (spec 7)."""
        if ex is not None and (
            self.state == D_CHUNKED or (self.state == D_LENGTH and (self.left > DISCARD_LIMIT or self.wants_continue))
        ):
            self.closing = True
        self.wants_continue = False
        self.engine.gather.reset()
        parts = [status_line(status), self.engine.clock.server_and_date(), lines]
        if self.closing:
            parts.append(b"connection: close, upgrade\r\n" if status == 426 else b"connection: close\r\n")
        if body:
            parts.append(b"content-type: text/plain\r\ncontent-length: %d\r\n\r\n" % len(body))
            if not is_head:
                parts.append(body)
        elif status == 429:
            parts.append(b"transfer-encoding: chunked\r\n\r\n" if is_head else b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n")
        elif status == 204 or status == 304:
            parts.append(b"\r\n")
        else:
            parts.append(b"content-length: 0\r\n\r\n")
        text = b"".join(parts)
        if ex is not None and self.port.log_wants_answer:
            keep_answer(ex, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
        self.engine.count_n(G_DOWNSTREAM_BYTES_SENT, PyBytes_GET_SIZE(text))
        return self.send(PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))

    cdef int send_continue(self, Exchange ex) except -1:
        """The client may send its body: once its limits have let it pass."""
        if not self.wants_continue or self.state == D_WAIT or (ex.verdict is not None and ex.verdict.left):
            return 0
        self.wants_continue = False
        self.engine.count_n(G_DOWNSTREAM_BYTES_SENT, 25)
        return self.send(<const char *>b"HTTP/1.1 100 Continue\r\n\r\n", 25)

    cdef int response_info(self, const uint8_t *base, ef_head *head) except -1:
        """An interim response goes on as it is, without hop-by-hop lines."""
        cdef Out *out = &self.engine.out
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
        return self.send(out.data, out.size)

    cdef int response_head(self, Exchange ex, const uint8_t *base, ef_head *head) except -1:
        cdef Engine engine = self.engine
        self.chunked_response = head.body == EF_BODY_CHUNKED or head.body == EF_BODY_EOF
        if engine.draining:
            self.closing = True
        self.wants_continue = False
        write_response_head(ex, self, base, head)
        if self.port.log_wants_answer:
            keep_answer(ex, engine.out.data, engine.out.size)
        engine.gather.reset()
        engine.gather.add(self, engine.out.data, engine.out.size)
        if head.response_status == 101:
            self.state = D_TUNNEL
            self.closing = True
            self.engine.wheel.disarm(self)
            if self.pending_len:
                self.schedule()
            else:
                self.resume()
        return 0

    cdef int response_body(self, const uint8_t *data, size_t n) except -1:
        if self.chunked_response:
            return self.engine.gather.add_chunked(self, data, n)
        return self.engine.gather.add(self, data, n)

    cdef int response_flush(self) except -1:
        return self.engine.gather.flush(self)

    cdef int response_end(self) except -1:
        if self.chunked_response:
            self.engine.gather.add_last_chunk()
            self.chunked_response = False
        return self.engine.gather.flush(self)

    cdef int response_abort(self) except -1:
        self.engine.gather.reset()
        self.closing = True
        return self.shut(True)

    cdef int partial_done(self) except -1:
        free(self.partial)
        self.partial = NULL
        return 0

    cdef int linger(self) except -1:
        """No more answers: tell the client, read and drop what it still sends for a moment, then close. A close while bytes
        still come in would reset the connection and could take the answer with it (RFC 9112 9.6)."""
        if self.closed:
            return 0
        self.state = D_DISCARD
        self.discarded = 0
        self.resume()
        if self.fd >= 0 and not self.spilled:
            shutdown(self.fd, SHUT_WR)
        elif self.transport.can_write_eof():
            self.transport.write_eof()
        self.unsent = <size_t>-1
        self.stalls = 0
        self.engine.wheel.disarm(self)
        return self.engine.wheel.arm(self, self.engine.wheel.now + LINGER_MS)


cdef bytes failure_text(int status, uint32_t flag):
    if flag & F_NO_ENDPOINT:
        return b"no healthy endpoint\n"
    if flag & F_OVERFLOW:
        return b"too many connections and requests wait for this backend\n"
    if flag & F_CONNECT:
        return b"the backend could not be reached\n"
    if flag & F_RESET:
        return b"the backend closed the connection before it answered\n"
    if flag & F_PROTOCOL:
        return b"the backend's answer was not valid HTTP\n"
    if flag & F_IDLE:
        return b"nothing was sent or received for too long\n"
    if status == 504:
        return b"the backend did not answer in time\n"
    if status == 408:
        return b"the request body came too slowly\n"
    return b"the request was not valid\n"
