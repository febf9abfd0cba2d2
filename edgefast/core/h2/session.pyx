# Session: an HTTP/2 connection of a client: bytes in, streams out, frames back once per turn.
#
# In: bytes of a client after its preface, deadlines, the request to close. Out: streams, frames, and the one end. A connection error (RFC
# 9113) or a spent budget (csrc/h2_guard.h) is GOAWAY with its reason, then a close that loses nothing of it. It holds no request and no
# answer: its streams do.

cdef class H2Server(H2Frames):
    def __cinit__(self, Engine engine, PortTable port, Peer peer):
        self.engine = engine
        self.port = port
        self.peer = peer
        self.touched = []

    cdef int take_over(self, Connection connection) except -1:
        """Serve a connection whose next bytes are a client's preface."""
        cdef Engine engine = self.engine
        cdef HttpSettings settings = self.port.settings
        cdef int64_t now = engine.wheel.now
        self.prepare()
        if nghttp2_session_server_new2(&self.frames, H2_SERVER_CALLBACKS, <void *>self, H2_OPTIONS) < 0:
            raise MemoryError
        h2_submit_settings(self.frames, settings)
        ef_h2_guard_begin(&self.guard, settings.request_limits.head, now)
        engine.count(G_H2_CONNECTIONS)
        engine.connections[self] = None
        memory_of(engine).join(self)
        connection.session = self
        self.connection = connection
        self.ack_by = now + H2_ACK_MS
        self.idle_by = now + settings.idle_timeout
        self.heard = now
        if settings.h2_ping:
            self.ping_at = now + settings.h2_ping
        if engine.draining:
            self.shutdown()
        connection.go_on_later()
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
        if self.guard.error:
            self.terminate(self.guard.error)
            return n
        used = self.feed(data, some)
        if self.breach != EF_H2_CALM:
            self.calm(self.breach)
            return n
        if used < 0:
            self.terminate(NGHTTP2_PROTOCOL_ERROR if self.off_order or used == NGHTTP2_ERR_BAD_CLIENT_MAGIC else NGHTTP2_ENHANCE_YOUR_CALM)
            return n
        self.keep_block(self.port.settings.head_timeout)
        if self.touched:
            touched, self.touched = self.touched, []
            for stream in touched:
                stream.new_cookies()
                stream.recount()
        self.mark()
        if some < n and not connection.closed:
            connection.go_on_later()
        return some

    cdef bint holds_back(self) noexcept:
        return True  # requests beyond H2_TURN: when everybody else has had as many

    cdef const ef_head_limits *limits(self) noexcept:
        return &H2_TRAILER_LIMITS if self.is_trailer else &self.port.settings.request_limits

    cdef int on_begin_block(self, int32_t id, bint begins) except -1:
        cdef H2Stream stream
        cdef Engine engine = self.engine
        self.block_by = 0
        self.begin_block(id, EF_H2_REQUEST if begins else EF_H2_TRAILERS, self.peer.tls)
        if not begins:
            return 0
        ef_h2_guard_stream(&self.guard, engine.wheel.now)
        stream = H2Stream.__new__(H2Stream, self, id)
        stream.surplus = not memory_of(engine).has_stream(self.holder)
        if not stream.surplus:
            memory_of(engine).count(1)
            self.holder.streams += 1
            trim_rose(&engine.trim.streams, memory_of(engine).streams)
        self.streams[id] = stream
        self.idle_by = 0
        nghttp2_session_set_stream_user_data(self.frames, id, &stream.out)
        nghttp2_session_change_extpri_stream_priority(self.frames, id, &H2_EQUAL, 1)  # whatever the client asks for
        return 0

    cdef int on_block(self, int32_t id, bint ends) except -1:
        """A block is complete: a request begins, or ends with its trailers."""
        cdef Engine engine = self.engine
        cdef ef_head *head = &engine.request_head
        cdef H2Stream stream = h2_stream(self.frames, id)
        cdef HttpSettings settings = self.port.settings
        cdef ef_h2_block facts
        cdef bytes why
        cdef int length
        if self.block != id or stream is None:
            return 0
        self.block = 0
        self.block_by = 0
        if self.is_trailer:
            length = ef_h2_text_end(&self.text, &H2_TRAILER_LIMITS, &facts, NULL)
            if self.is_malformed or length < 0 or not ends:
                engine.count(G_H2_MALFORMED)
                return stream.reset(NGHTTP2_PROTOCOL_ERROR)
            if length and stream.exchange is not None:
                stream.exchange.request_trailers(self.text.buf, length)
                stream.recount()
            return stream.end()
        if not self.port.listeners:  # it was on its way when the port went: elsewhere it may be served
            self.shutdown()
        # Before anything is done for it.
        if stream.surplus or not self.port.listeners or memory_of(engine).refuses(self):
            engine.count(G_H2_REFUSED)
            return stream.reset(NGHTTP2_REFUSED_STREAM)
        facts.method = EF_M_GET
        facts.ends = ends
        facts.key = NULL
        if self.text.is_tunnel:
            stream.key = b64encode(os.urandom(16))
            facts.key = <const uint8_t *>PyBytes_AS_STRING(stream.key)
        length = ef_h2_text_end(&self.text, &settings.request_limits, &facts, head)
        if self.is_malformed or (length < 0 and self.text.status == 0):
            engine.count(G_H2_MALFORMED)
            why = ef_h2_error_text(EF_H2_E_VALUE if self.is_malformed and length >= 0 else self.text.error)
            engine.observer.log_refused(self.peer, 400, why)
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

    cdef int on_turn_end(self) except -1:
        self.flush()
        if self.breach != EF_H2_CALM and not self.discarding:
            self.calm(self.breach)
        if memory_of(self.engine).held > EF_H2_HELD:
            memory_of(self.engine).make_room(self.engine.wheel.now)
        return self.rearm() if not self.connection.closed and not self.discarding else 0

    cdef int flush(self) except -1:
        """All that the client's windows and its socket take."""
        cdef Connection connection = self.connection
        cdef Out *out = &self.engine.h2_out
        cdef H2Stream stream
        cdef Exchange ex
        cdef list woken
        cdef bint more = True
        if self.busy or self.discarding or connection.closed:
            return 0
        while more and not connection.write_paused and not connection.closed:
            more = self.gather()
            if connection.closed:
                return 0
            if out.size:
                self.engine.count_n(G_DOWNSTREAM_BYTES_SENT, out.size)
                connection.send(out.data, out.size)
        h2_recount(self)
        self.watch_writes(self.engine.wheel.now, self.port.settings.stream_idle_timeout)
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

    cdef int took(self, void *stream, size_t n) except -1:
        (<H2Stream>stream).took(n)
        return 0

    cdef int on_sent(self) except -1:
        h2_recount(self)
        return 0

    cdef int on_writable(self, bint writable) except -1:
        if not writable:  # who does not read its answers asks for nothing more
            return self.connection.pause()
        self.write_by = 0
        h2_extend_deadlines(self, self.engine.wheel.now)
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
        self.engine.observer.log_refused(self.peer, 400, b"http2 " + <bytes>ef_h2_breach_name(breach))
        return self.terminate(NGHTTP2_ENHANCE_YOUR_CALM)

    cdef int terminate(self, uint32_t code) except -1:
        """Say why, and nothing more."""
        if self.discarding or self.connection.closed:
            return 0
        self.release_streams()
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
        self.release_streams()
        if nghttp2_session_want_write(self.frames) or connection.write_paused:
            return connection.shut(True)  # it does not even read this
        self.discarding = True
        connection.resume()
        connection.end_writes()
        connection.disarm()
        return connection.arm(LINGER_MS)

    cdef int on_stream_over(self, int32_t id, uint32_t code) except -1:
        cdef H2Stream stream = self.streams.pop(id, None)
        return stream.close() if stream is not None else 0

    cdef int release_streams(self) except -1:
        cdef H2Stream stream
        while self.streams:
            stream = self.streams.popitem()[1]
            nghttp2_session_set_stream_user_data(self.frames, stream.id, NULL)
            stream.close()
        return 0

    cdef int on_eof(self) except -1:
        self.release_streams()
        return self.connection.shut(False)

    cdef int on_hangup(self) except -1:
        return self.connection.shut(True)

    cdef int on_lost(self) except -1:
        forget_connection(self.engine, self)
        release_slot(self.peer, self.connection)
        self.engine.count_down(G_CONNECTIONS_ACTIVE)
        self.release_streams()
        memory_of(self.engine).leave(self)
        nghttp2_session_del(self.frames)
        self.frames = NULL
        free(self.partial.data)
        memset(&self.partial, 0, sizeof(Out))
        self.touched = self.woken = None
        return self.engine.trim.fell(&self.engine.trim.connections, len(self.engine.connections))

    cdef int retire(self, object port, bint outdated) except -1:
        if self.connection.closed or self.discarding or (port is not None and self.port is not port):
            return 0
        if outdated:
            start_drain_timer(self.engine, self.port, self)
        return self.shutdown()

    cdef int stop(self, bint abort) except -1:
        if abort:
            return self.connection.shut(True)
        self.shutdown()
        if not self.streams:
            return self.terminate(NGHTTP2_NO_ERROR)
        return 0

    cdef int64_t inactive_since(self, bint busy) except -2:
        cdef H2Stream stream
        cdef int64_t since, last = 0
        if self.busy:
            return -1
        if self.connection.unsent():  # answers, or their ends
            if not busy:
                return -1
            last = self.connection.took_at
            if not self.streams:
                return last
        if self.discarding:
            return max(self.connection.deadline - LINGER_MS, <int64_t>0)
        if not self.streams:
            return self.idle_by - self.port.settings.idle_timeout if self.idle_by else -1
        if not busy:
            return -1
        for stream in self.streams.values():
            since = stream.exchange.inactive_since() if stream.exchange is not None else stream.reads_until
            if since < 0:
                return -1
            last = max(last, since)
        return last

    cdef int preempt(self) except -1:
        cdef Connection connection = self.connection
        self.engine.count(G_CONNECTIONS_GAVE_WAY)
        release_slot(self.peer, connection)
        self.terminate(NGHTTP2_ENHANCE_YOUR_CALM if self.streams else NGHTTP2_NO_ERROR)
        return connection.shut(connection.closed or connection.unsent() > 0)

    # --- time ------------------------------------------------------------------------------------------------------

    cdef int rearm(self) except -1:
        if self.streams and not self.look_at:
            self.look_at = self.engine.wheel.now + self.port.settings.stream_idle_timeout // 4 + 1
        return self.arm_first(self.last_by)

    cdef int on_deadline(self, int64_t now) except -1:
        cdef Connection connection = self.connection
        if self.discarding:
            if connection.flushing():
                return connection.arm(LINGER_MS)
            return connection.shut(True)
        if self.write_by and self.write_by <= now and not h2_takes(self, now):
            return connection.shut(True)
        if connection.write_paused:
            h2_extend_deadlines(self, now)
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
            self.ping_silent(now, self.port.settings.h2_ping, True)
        if self.look_at and self.look_at <= now:
            self.look_at = 0
            h2_look_at_streams(self, now)
        self.mark()
        return self.rearm()
