# Responder: writes answers to a stream: the proxy's own, and the backend's as it comes.
#
# In: the answer of an exchange. Out: fields for nghttp2, and a queue of body bytes for the client's windows. The output of a turn is sent
# at its end. It reads nothing; H2Stream is its other half. After the stream is closed it writes nothing.

cdef bytes HTTP_2 = b"HTTP/2"
cdef bytes WEBSOCKET_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 1.3


cdef inline uint32_t h2_code_of(Cut why) noexcept:
    """RFC 9113 7."""
    if why == CUT_CANCEL or why == CUT_TIMEOUT:
        return NGHTTP2_CANCEL
    if why == CUT_REFUSED:
        return NGHTTP2_REFUSED_STREAM
    if why == CUT_PROTOCOL:
        return NGHTTP2_PROTOCOL_ERROR
    return NGHTTP2_ENHANCE_YOUR_CALM if why == CUT_CALM else NGHTTP2_INTERNAL_ERROR


cdef class H2Responder(Inbound):
    def __dealloc__(self):
        h2_outflow_free(&self.out)

    # --- heads -----------------------------------------------------------------------------------------------------

    cdef int begin_answer(self, Out *out, bint has_body) except -1:
        """The head of the final answer; `out` is its HTTP/1.1 text."""
        cdef Engine engine = self.engine
        cdef int n
        if self.session is None:
            return 0
        n = ef_h2_lines_response(out.data, out.size, self.tunnel, engine.h2_pairs, H2_PAIRS)
        if n < 0:
            _log.error("http2: response has an invalid header field or too many header fields")
            return self.reset(NGHTTP2_INTERNAL_ERROR)
        self.answered = True
        self.wait_for_window()
        if nghttp2_submit_response(
            self.session.frames, self.id, <const nghttp2_nv *>engine.h2_pairs, n, &H2_BODY if has_body else NULL
        ) < 0:
            return self.reset(NGHTTP2_INTERNAL_ERROR)
        self.heads += out.size
        self.recount()
        return self.session.mark()

    cdef int submit_response(self, Out *out) except -1:
        """An interim head."""
        cdef int n
        if self.session is None:
            return 0
        n = ef_h2_lines_response(out.data, out.size, False, self.engine.h2_pairs, H2_PAIRS)
        if n > 0:
            nghttp2_submit_headers(
                self.session.frames, NGHTTP2_FLAG_NONE, self.id, NULL, <const nghttp2_nv *>self.engine.h2_pairs, n, NULL
            )
            self.heads += out.size
            self.recount()
        return self.session.mark()

    cdef int answer(self, int status, bytes lines, bytes body, bint is_head) except -1:
        cdef Engine engine = self.engine
        cdef Exchange ex = self.exchange
        cdef Out *out = &engine.out
        cdef iovec piece
        self.wants_continue = False
        parts = [status_line(status), first_lines(engine, ex), lines]
        if body:
            parts.append(b"%bcontent-length: %d\r\n" % (type_line(lines), len(body)))
        elif status != 429 and status != 204 and status != 304:
            parts.append(b"content-length: 0\r\n")
        parts.append(b"\r\n")
        text = b"".join(parts)
        if ex is not None and self.session is not None and self.session.port.log_wants_answer:
            self.engine.observer.keep_answer(ex, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
        out.size = 0
        out_reserve(out, PyBytes_GET_SIZE(text))
        out_bytes(out, text)
        self.out.ended = True
        if body and not is_head and self.session is not None:
            piece.iov_base = PyBytes_AS_STRING(body)
            piece.iov_len = PyBytes_GET_SIZE(body)
            queue_append(&self.out.queue, &piece, 1, 0, piece.iov_len, H2_BLOCK)
        return self.begin_answer(out, self.out.queue.len > 0)

    cdef int send_continue(self) except -1:
        cdef Out *out = &self.engine.out
        if not self.wants_continue or self.request_over:
            return 0
        self.wants_continue = False
        out.size = 0
        out_reserve(out, 32)
        out_raw(out, <const char *>b"HTTP/1.1 100 Continue\r\n\r\n", 25)
        return self.submit_response(out)

    cdef int response_info(self, const uint8_t *base, ef_head *head) except -1:
        cdef Out *out = &self.engine.out
        out.size = 0
        out_reserve(out, head.head_len + 64)
        out_raw(out, <const char *>b"HTTP/1.1 ", 9)
        write_status_rest(out, base, head)
        write_spans(out, base, head, EF_SPAN_HOP | EF_SPAN_NOMINATED, <uint32_t>1 << EF_H_CONTENT_LENGTH, None, None)
        return self.submit_response(out)

    cdef int response_head(self, const uint8_t *base, ef_head *head) except -1:
        cdef Engine engine = self.engine
        cdef Exchange ex = self.exchange
        cdef Out *out = &engine.out
        self.wants_continue = False
        if head.response_status == 101:
            self.tunnel = True
            if not self.accepts(base, head):
                return self.reset(NGHTTP2_INTERNAL_ERROR)
        write_response_head(ex, base, head, 0)
        if self.session is not None and self.session.port.log_wants_answer:
            self.engine.observer.keep_answer(ex, out.data, out.size)
        return self.begin_answer(out, self.tunnel or head.body != EF_BODY_NONE)

    cdef bint accepts(self, const uint8_t *base, ef_head *head) except -1:
        """The backend has understood the key that we made: what it says from here on is a WebSocket's (RFC 6455 4.1)."""
        cdef uint16_t i
        cdef bytes wanted
        if self.key is None:
            return False
        wanted = b64encode(sha1(self.key + WEBSOCKET_GUID).digest())
        for i in range(head.n_spans):
            if head.spans[i].name_hash == HASH_WEBSOCKET_ACCEPT and head.spans[i].name_len == 20:
                return base[head.spans[i].val_off:head.spans[i].val_off + head.spans[i].val_len] == wanted
        return False

    # --- bodies ----------------------------------------------------------------------------------------------------

    cdef int response_body(self, const uint8_t *data, size_t n) except -1:
        cdef iovec piece
        if self.session is None or n == 0:
            return 0
        if self.out.queue.len == 0:
            self.wait_for_window()
        piece.iov_base = <void *>data
        piece.iov_len = n
        queue_append(&self.out.queue, &piece, 1, 0, n, H2_BLOCK)
        self.recount()
        return 0

    cdef int response_flush(self) except -1:
        self.look_at_room()
        return self.more()

    cdef int response_trailers(self, const uint8_t *lines, size_t n) except -1:
        if self.session is None or self.tunnel:
            return 0
        self.out.trailers.size = 0
        out_reserve(&self.out.trailers, n)
        out_raw(&self.out.trailers, lines, n)
        return 0

    cdef int response_end(self) except -1:
        self.out.ended = True
        if self.out.queue.len == 0:
            self.wait_for_window()
        return self.more()

    cdef void wait_for_window(self) noexcept:
        """Something is there for the client's window: bytes, or an end, which nghttp2 does not send into one that is shut, either."""
        self.reads_until = self.engine.wheel.now + BODY_PATIENCE_MS

    cdef void await_end(self, int64_t wait) noexcept:
        """END_STREAM is sent and the client's half is still open: the client has `wait` ms to end it. After an immediate reset clients drop
        the last frames: curl 7.88 an early answer, browsers a WebSocket's close frame (RFC 8441 5)."""
        cdef H2Server session = self.session
        self.end_by = self.engine.wheel.now + wait
        if not session.look_at or session.look_at > self.end_by:
            session.look_at = self.end_by

    cdef int more(self) except -1:
        """There is more for nghttp2 to take, or an end."""
        return self.session.more(&self.out, self.id) if self.session is not None else 0

    cdef void look_at_room(self) noexcept:
        """A client that does not take its answer holds up to a buffer of it; less when all of them together hold too much."""
        cdef Connection connection = self.session.connection if self.session is not None else None
        if connection is None:
            self.write_paused = False
        elif self.out.queue.len > connection.buffer_bytes or (self.out.queue.len and memory_of(self.engine).is_crowded(self.session.holder)):
            self.write_paused = True

    cdef void took(self, size_t n) noexcept:
        """The client has these bytes, or the kernel."""
        queue_take(&self.out.queue, n)
        self.recount()
        h2_credit(self, n)
        if self.write_paused and self.out.queue.len <= self.session.connection.buffer_bytes // 4:
            self.write_paused = False
            self.session.woken.append(self)

    cdef void recount(self) noexcept:
        """What it holds has changed: memory, not bytes in it, is what others lack."""
        cdef H2Server session = self.session
        cdef size_t holds = self.out.queue.room + self.heads + self.asked()
        if session is None or holds == self.counted:
            return
        h2_hold(session, session.held + holds - self.counted)
        self.counted = holds

    cdef size_t asked(self) noexcept:
        """Memory of its request beyond what every stream may have (EF_H2_STREAMS), and beyond what body_buffer.pyx counts."""
        cdef Exchange ex = self.exchange
        cdef size_t held
        if ex is None:
            return 0
        held = ex.raw.cap + ex.head.cap + ex.body.trailers.cap + ex.body.kept.cap - min(ex.body.kept.cap, ex.body.borrowed)
        if ex.received is not None:
            held += PyBytes_GET_SIZE(ex.received)
        if ex.auth is not None:
            held += ex.auth.held
        return held - H2_REQUEST if held > H2_REQUEST else 0

    cdef bint takes_end(self, bint trailers) noexcept:
        return self.session is not None and self.answered and not self.out.ended and not self.tunnel

    cdef size_t untaken(self) noexcept:
        return self.out.queue.len

    cdef bint has_room(self) noexcept:
        return False  # windows say what can be sent, and they are small

    # --- the request's body ----------------------------------------------------------------------------------------

    cdef int pause(self) except -1:
        self.read_paused = True
        return 0

    cdef int resume(self) except -1:
        """Its window opens again by what was taken meanwhile."""
        self.read_paused = False
        self.recount()  # what was kept of its body may have gone on
        if self.unconsumed and self.session is not None:
            nghttp2_session_consume(self.session.frames, self.id, self.unconsumed)
            self.unconsumed = 0
            return self.session.mark()
        return 0

    cdef bint paused(self) noexcept:
        return self.read_paused

    # --- ends ------------------------------------------------------------------------------------------------------

    cdef int reset(self, uint32_t code) except -1:
        if self.session is None:
            return 0
        self.is_reset = True
        nghttp2_submit_rst_stream(self.session.frames, NGHTTP2_FLAG_NONE, self.id, code)
        return self.session.mark()

    cdef int refuse_more(self) except -1:
        """A stream has one request; where nothing is served any more, its connection ends."""
        if self.session is not None and not self.session.port.listeners:
            return self.session.shutdown()
        return 0

    cdef int refuse(self, int status, bytes reason, bytes why) except -1:
        """Answer a message that never became a request."""
        self.answer(status, b"", reason + b"\n", self.is_head)
        return self.engine.observer.log_refused(self.peer, status, why)

    cdef int abort(self, Cut why) except -1:
        if why == CUT_TIMEOUT and self.session is not None and self.out.queue.len > 0 and h2_is_late(self, self.engine.wheel.now):
            h2_report_stall(self.session)
        return self.reset(h2_code_of(why))

    cdef int done(self, Exchange ex) except -1:
        """Drop the rest of the request's body; RST_STREAM(NO_ERROR) follows END_STREAM after H2_EARLY_MS."""
        if self.exchange is not ex:
            return 0
        self.exchange = None
        if self.tunnel and not self.out.ended:
            self.response_end()
        return self.resume()

    cdef int learn_ends(self) except -1:
        if self.session is not None:
            self.peer.local = address_of(self.session.connection, True)
            self.peer.remote = address_of(self.session.connection, False)
        return 0
