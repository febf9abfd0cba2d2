# A client's connection that speaks HTTP/2: bytes in, streams out, frames back once per turn.
#
# In: bytes of a client whose preface has been seen, deadlines, the wish that it ends. Out: streams, frames, and the one end: what
# RFC 9113 calls a connection error, or a budget that is spent (csrc/h2_guard.h), is GOAWAY with its reason, then a close that loses
# nothing of it. It holds no request and no answer: those are its streams'.

cdef class H2Server(Session):
    def __cinit__(self, Engine engine, PortTable port, Peer peer):
        self.engine = engine
        self.port = port
        self.peer = peer
        self.streams = {}
        self.touched = []
        self.woken = []

    def __dealloc__(self):
        if self.frames != NULL:
            nghttp2_session_del(self.frames)
        free(self.partial.data)

    cdef int take_over(self, Connection connection) except -1:
        """Serve a connection whose next bytes are a client's preface."""
        cdef Engine engine = self.engine
        cdef HttpSettings settings = self.port.settings
        cdef int64_t now = engine.wheel.now
        h2_prepare()
        if engine.h2_text == NULL:
            engine.h2_text = <uint8_t *>malloc(2 * EF_MAX_HEAD)
            if engine.h2_text == NULL:
                raise MemoryError
        if nghttp2_session_server_new2(&self.frames, H2_CALLBACKS, <void *>self, H2_OPTIONS) < 0:
            raise MemoryError
        h2_submit_settings(self.frames, settings)
        ef_h2_guard_begin(&self.guard, settings.request_limits.head, now)
        engine.count(G_H2_CONNECTIONS)
        engine.connections.add(self)
        engine.h2_holders.join(self)
        connection.session = self
        self.connection = connection
        self.ack_by = now + H2_ACK_MS
        self.idle_by = now + settings.idle_timeout
        self.heard = now
        if settings.h2_ping:
            self.ping_at = now + settings.h2_ping
        if engine.draining:
            self.shutdown()
        connection.go_on()
        self.rearm()
        return self.mark()

    # --- bytes from the client -------------------------------------------------------------------------------------

    cdef ssize_t received(self, const uint8_t *data, size_t n) except -1:
        cdef Connection connection = self.connection
        cdef H2Stream stream
        cdef list touched
        cdef ssize_t used
        cdef size_t some = n
        cdef int breach
        if self.discarding:
            self.discarded += n
            if self.discarded > LINGER_BYTES:
                connection.shut(True)
            return n
        self.heard = self.engine.wheel.now
        breach = ef_h2_guard_feed_some(&self.guard, data, &some, H2_TURN, self.heard)
        if breach != EF_H2_CALM:
            self.calm(breach)
            return n
        if self.block and self.partial.size:
            memcpy(self.engine.h2_text, self.partial.data, self.text.len)
            memcpy(self.engine.h2_text + self.text.room, self.partial.data + self.text.len, self.text.held)
            self.text.buf = self.engine.h2_text
        self.busy = True
        used = nghttp2_session_mem_recv(self.frames, data, some)
        self.busy = False
        if self.fault is not None:
            fault, self.fault = self.fault, None
            raise fault
        if self.breach != EF_H2_CALM:
            self.calm(self.breach)
            return n
        if used < 0:
            self.terminate(NGHTTP2_PROTOCOL_ERROR if self.off_order or used == NGHTTP2_ERR_BAD_CLIENT_MAGIC else NGHTTP2_ENHANCE_YOUR_CALM)
            return n
        self.keep_block()
        if self.touched:
            touched, self.touched = self.touched, []
            for stream in touched:
                stream.handed()
                stream.recount()
        self.mark()
        if some < n and not connection.closed:
            connection.go_on()
        return some

    cdef bint holds_back(self) noexcept:
        return True  # requests beyond H2_TURN: when everybody else has had as many

    cdef int keep_block(self) except -1:
        """A block that goes on with the next read: what there is of its text is ours until then."""
        if not self.block:
            self.block_by = 0
            free(self.partial.data)
            memset(&self.partial, 0, sizeof(Out))
            return 0
        self.partial.size = 0
        out_reserve(&self.partial, self.text.len + self.text.held + 1)
        out_raw(&self.partial, self.text.buf, self.text.len)
        out_raw(&self.partial, self.text.buf + self.text.room, self.text.held)
        self.partial.size += 1  # also when there is nothing yet
        if not self.block_by:
            self.block_by = self.engine.wheel.now + self.port.settings.head_timeout
        return 0

    cdef int on_begin_block(self, int32_t id, bint trailing) except -1:
        cdef H2Stream stream
        cdef Engine engine = self.engine
        self.block = id
        self.block_by = 0
        self.trailing = trailing
        self.malformed = False
        ef_h2_text_begin(
            &self.text, EF_H2_TRAILERS if trailing else EF_H2_REQUEST, self.peer.tls,
            &H2_TRAILER_LIMITS if trailing else &self.port.settings.request_limits, engine.h2_text
        )
        if trailing:
            return 0
        ef_h2_guard_stream(&self.guard, engine.wheel.now)
        stream = H2Stream.__new__(H2Stream, self, id)
        stream.surplus = not engine.h2_holders.has_stream(self.holder)
        if not stream.surplus:
            engine.h2_holders.streams += 1
            self.holder.streams += 1
        self.streams[id] = stream
        self.idle_by = 0
        nghttp2_session_set_stream_user_data(self.frames, id, <void *>stream)
        return 0

    cdef int on_block(self, int32_t id, bint ends) except -1:
        """A block is complete: a request begins, or ends with its trailers."""
        cdef Engine engine = self.engine
        cdef ef_head *head = &engine.request_head
        cdef H2Stream stream = self.streams.get(id)
        cdef HttpSettings settings = self.port.settings
        cdef ef_h2_block facts
        cdef bytes why
        cdef int length
        if self.block != id or stream is None:
            return 0
        self.block = 0
        self.block_by = 0
        if self.trailing:
            length = ef_h2_text_end(&self.text, &H2_TRAILER_LIMITS, &facts, NULL)
            if self.malformed or length < 0 or not ends:
                engine.count(G_H2_MALFORMED)
                return stream.reset(NGHTTP2_PROTOCOL_ERROR)
            if length and stream.exchange is not None:
                stream.exchange.request_trailers(self.text.buf, length)
                stream.recount()
            return stream.end()
        if stream.surplus or engine.h2_holders.refuses(self):  # before anything is done for it
            engine.count(G_H2_REFUSED)
            return stream.reset(NGHTTP2_REFUSED_STREAM)
        facts.method = EF_M_GET
        facts.ends = ends
        facts.key = NULL
        if self.text.is_tunnel:
            stream.key = b64encode(os.urandom(16))
            facts.key = <const uint8_t *>PyBytes_AS_STRING(stream.key)
        length = ef_h2_text_end(&self.text, &settings.request_limits, &facts, head)
        if self.malformed or (length < 0 and self.text.status == 0):
            engine.count(G_H2_MALFORMED)
            why = ef_h2_error_text(EF_H2_E_VALUE if self.malformed and length >= 0 else self.text.error)
            log_refused(engine, self.peer, 400, why)
            return stream.reset(NGHTTP2_PROTOCOL_ERROR)
        self.requests += 1
        if engine.draining or self.requests >= settings.h2_requests:
            self.shutdown()
        if length < 0:
            stream.request_over = ends
            stream.left = 0 if ends else -1
            if self.text.error == EF_H2_E_HEAD:
                engine.count(G_HEAD_REFUSED + head.error - 1)
                why = ef_head_error_text(head.error)
                stream.is_head = head.method == EF_M_HEAD
            else:
                engine.count(G_H2_MALFORMED)
                why = ef_h2_error_text(self.text.error)
            return stream.refuse(self.text.status, why, why)
        stream.is_head = head.method == EF_M_HEAD
        return stream.begin(self.text.buf, head, ends)

    # --- frames to the client --------------------------------------------------------------------------------------

    cdef int mark(self) except -1:
        """What has been said goes out at the end of the turn."""
        return self.connection.call_at_turn_end() if not self.connection.closed else 0

    cdef int on_turn_end(self) except -1:
        self.flush()
        if self.breach != EF_H2_CALM and not self.discarding:
            self.calm(self.breach)
        if self.engine.h2_holders.held > H2_HELD:
            self.engine.h2_holders.make_room(self.engine.wheel.now)
        return self.rearm() if not self.connection.closed and not self.discarding else 0

    cdef int flush(self) except -1:
        """All that the client's windows and its socket take."""
        cdef Connection connection = self.connection
        cdef Out *out = &self.engine.h2_out
        cdef const uint8_t *data
        cdef ssize_t n
        cdef H2Stream stream
        cdef Exchange ex
        cdef list woken
        if self.busy or self.discarding or connection.closed:
            return 0
        out.size = 0
        while not connection.write_paused and not connection.closed:
            self.busy = True
            n = nghttp2_session_mem_send(self.frames, &data)
            self.busy = False
            if self.fault is not None:
                fault, self.fault = self.fault, None
                raise fault
            if n < 0:  # no memory, or a fault of ours: what is in the middle of a frame cannot go on
                return connection.shut(True)
            if n > 0:
                out_reserve(out, n)
                out_raw(out, data, n)
            if n <= 0 and out.size < H2_SEND:
                break
            if out.size >= H2_SEND:
                self.engine.count_n(G_DOWNSTREAM_BYTES_SENT, out.size)
                connection.send(out.data, out.size)
                out.size = 0
        if out.size:
            self.engine.count_n(G_DOWNSTREAM_BYTES_SENT, out.size)
            connection.send(out.data, out.size)
            out.size = 0
        h2_recount(self)
        if connection.write_paused and not self.write_by:
            self.unsent = connection.unsent()
            self.write_by = self.engine.wheel.now + self.port.settings.stream_idle_timeout
        if self.woken:
            woken, self.woken = self.woken, []
            for stream in woken:
                ex = stream.exchange
                if ex is not None and not stream.write_paused:
                    ex.on_down_writable()
        if not self.streams and not self.idle_by:
            self.idle_by = self.engine.wheel.now + self.port.settings.idle_timeout
        if not nghttp2_session_want_read(self.frames) and not nghttp2_session_want_write(self.frames):
            return self.over()
        return 0

    cdef int on_sent(self) except -1:
        h2_recount(self)
        return 0

    cdef int on_writable(self, bint writable) except -1:
        if not writable:  # who does not read its answers asks for nothing more
            return self.connection.pause()
        self.write_by = 0
        h2_excuse(self, self.engine.wheel.now)
        if self.connection.pending.len:
            self.connection.go_on()
        else:
            self.connection.resume()
        return self.mark()

    # --- ends ------------------------------------------------------------------------------------------------------

    cdef int calm(self, int breach) except -1:
        """It costs more than its requests are worth."""
        self.breach = EF_H2_CALM
        self.engine.count(G_H2_BREACH + breach - 1)
        log_refused(self.engine, self.peer, 400, b"http2 " + <bytes>ef_h2_breach_name(breach))
        return self.terminate(NGHTTP2_ENHANCE_YOUR_CALM)

    cdef int terminate(self, uint32_t code) except -1:
        """Say why, and nothing more."""
        if self.discarding or self.connection.closed:
            return 0
        self.let_streams_go()
        nghttp2_session_terminate_session(self.frames, code)
        self.flush()
        return self.over()

    cdef int shutdown(self) except -1:
        """No further streams, once the client knows: those that it opens meanwhile are served (RFC 9113 6.8)."""
        if self.draining:
            return 0
        self.draining = True
        nghttp2_submit_shutdown_notice(self.frames)
        self.last_by = self.engine.wheel.now + H2_NOTICE_MS
        return self.mark()

    cdef int over(self) except -1:
        """The last frame is out: read and drop what comes for a moment, then close (RFC 9112 9.6 says why)."""
        cdef Connection connection = self.connection
        if self.discarding or connection.closed:
            return 0
        self.let_streams_go()
        if nghttp2_session_want_write(self.frames) or connection.write_paused:
            return connection.shut(True)  # it does not even read this
        self.discarding = True
        connection.resume()
        connection.end_writes()
        connection.disarm()
        return connection.arm(LINGER_MS)

    cdef int let_streams_go(self) except -1:
        cdef H2Stream stream
        while self.streams:
            stream = self.streams.popitem()[1]
            nghttp2_session_set_stream_user_data(self.frames, stream.id, NULL)
            stream.close()
        return 0

    cdef int on_eof(self) except -1:
        self.let_streams_go()
        return self.connection.shut(False)

    cdef int on_hangup(self) except -1:
        return self.connection.shut(True)

    cdef int on_lost(self) except -1:
        self.engine.connections.discard(self)
        self.engine.count_down(G_CONNECTIONS_ACTIVE)
        self.let_streams_go()
        self.engine.h2_holders.leave(self)
        nghttp2_session_del(self.frames)
        self.frames = NULL
        free(self.partial.data)
        memset(&self.partial, 0, sizeof(Out))
        self.touched = self.woken = None
        return 0

    cdef int retire(self, object port) except -1:
        if self.connection.closed or self.discarding or (port is not None and self.port is not port):
            return 0
        return self.shutdown()

    cdef int stop(self, bint abort) except -1:
        if abort:
            return self.connection.shut(True)
        self.shutdown()
        if not self.streams:
            return self.terminate(NGHTTP2_NO_ERROR)
        return 0

    # --- time ------------------------------------------------------------------------------------------------------

    cdef int rearm(self) except -1:
        cdef int64_t at = 0, each
        if self.streams and not self.look_at:
            self.look_at = self.engine.wheel.now + self.port.settings.stream_idle_timeout // 4 + 1
        for each in (self.ack_by, self.block_by, self.last_by, self.idle_by, self.ping_at, self.ping_by, self.look_at, self.write_by):
            if each and (at == 0 or each < at):
                at = each
        return self.connection.arm(at - self.engine.wheel.now) if at else 0

    cdef int on_deadline(self, int64_t now) except -1:
        cdef Connection connection = self.connection
        if self.discarding:
            if connection.flushing():
                return connection.arm(LINGER_MS)
            return connection.shut(True)
        if self.write_by and self.write_by <= now and not h2_takes(self, now):
            return connection.shut(True)
        if connection.write_paused:
            h2_excuse(self, now)
        if self.ack_by and self.ack_by <= now:
            return self.terminate(NGHTTP2_SETTINGS_TIMEOUT)
        if self.block_by and self.block_by <= now:
            self.engine.count(G_HEAD_TIMEOUTS)
            return self.terminate(NGHTTP2_ENHANCE_YOUR_CALM)
        if self.ping_by and self.ping_by <= now:
            return connection.shut(True)
        if self.last_by and self.last_by <= now:
            self.last_by = 0
            nghttp2_submit_goaway(
                self.frames, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(self.frames), NGHTTP2_NO_ERROR, NULL, 0
            )
        if self.idle_by and self.idle_by <= now and not self.streams:
            return self.terminate(NGHTTP2_NO_ERROR)
        if self.ping_at and self.ping_at <= now:
            self.ping_at = max(self.heard, now - self.port.settings.h2_ping + 1) + self.port.settings.h2_ping
            if now - self.heard >= self.port.settings.h2_ping and not self.ping_by and not connection.write_paused:
                self.ping_by = now + H2_PING_MS
                nghttp2_submit_ping(self.frames, NGHTTP2_FLAG_NONE, NULL)
        if self.look_at and self.look_at <= now:
            self.look_at = 0
            h2_look_at_streams(self, now)
        self.mark()
        return self.rearm()
