# Client: an HTTP/2 connection to a backend: bytes in, answers out to their users, frames back once per turn.
#
# In: an open connection, bytes of a backend, deadlines. Out: streams for requests (open_call), their events, and the one end. A connection
# error (RFC 9113) or a spent budget (csrc/h2_guard.h) ends it with GOAWAY and costs its requests. It is ready when the backend's SETTINGS
# arrive: a backend without HTTP/2 is detected before a request is sent. It holds no request.

cdef class H2Client(H2Frames):
    def __cinit__(self, Engine engine, Endpoint endpoint, HttpSettings settings):
        self.engine = engine
        self.endpoint = endpoint
        self.cluster = endpoint.cluster
        self.settings = settings
        self.unborn = set()
        self.paced = {}
        self.fresh = []
        self.failed = []

    cdef int on_open(self) except -1:
        cdef Engine engine = self.engine
        cdef HttpSettings settings = self.settings
        cdef nghttp2_settings_entry ours[4]
        self.prepare()
        if nghttp2_session_client_new2(&self.frames, H2_CLIENT_CALLBACKS, <void *>self, H2_OPTIONS) < 0:
            raise MemoryError
        ours[0].settings_id = NGHTTP2_SETTINGS_ENABLE_PUSH
        ours[0].value = 0
        ours[1].settings_id = NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS
        ours[1].value = 0
        ours[2].settings_id = NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE
        ours[2].value = settings.h2_up_stream_window
        ours[3].settings_id = NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE
        ours[3].value = settings.response_limits.head
        nghttp2_submit_settings(self.frames, NGHTTP2_FLAG_NONE, ours, 4)
        nghttp2_session_set_local_window_size(self.frames, NGHTTP2_FLAG_NONE, 0, settings.h2_up_window)
        self.heard = engine.wheel.now
        ef_h2_guard_begin_backend(&self.guard, settings.response_limits.head, self.heard)
        self.ack_by = self.heard + H2_ACK_MS
        self.ready_by = max(self.dial.give_up, self.heard + 1)
        if settings.h2_up_ping:
            self.ping_at = self.heard + settings.h2_up_ping
        self.connection.counted = &engine.stat.globals[G_UPSTREAM_BYTES_RECEIVED]
        self.connection.buffer_bytes = settings.buffer_bytes
        self.opened = True
        engine.count(G_UPSTREAM_CONNECTIONS_ACTIVE)
        engine.count(G_UPSTREAM_H2_CONNECTIONS)
        self.rearm()
        return self.mark()

    # --- the pool's questions --------------------------------------------------------------------------------------

    cdef uint32_t load(self) noexcept:
        return <uint32_t>(len(self.streams) + len(self.unborn))

    cdef bint takes(self, bint wants_tunnel) noexcept:
        """One more request; `wants_tunnel`: one that asks for a tunnel."""
        return (
            not self.draining and not self.used_up and not self.connection.closed and self.dial is None and self.load() < self.room and self.is_current()
            and (self.connects or not wants_tunnel)
        )

    cdef bint is_current(self) noexcept:
        """Made with the settings that the cluster has now."""
        return self.tls is self.cluster.tls and (self.tls is None or self.sni == self.cluster.sni)

    cdef bint is_idle(self) noexcept:
        return self.dial is None and self.load() == 0

    cdef Outbound open_call(self):
        """Room for one request: what a user begins with."""
        cdef H2Call call = H2Call.__new__(H2Call, self)
        self.unborn.add(call)
        self.begun += 1
        self.idle_by = 0
        return call

    # --- bytes from the backend ------------------------------------------------------------------------------------

    cdef ssize_t received(self, const uint8_t *data, size_t n) except -1:
        cdef ssize_t used
        cdef int breach
        cdef PoolDial dial
        self.heard = self.engine.wheel.now
        breach = ef_h2_guard_feed(&self.guard, data, n, self.heard)
        if breach != EF_H2_CALM:
            self.calm(breach)
            return n
        used = self.feed(data, n)
        if self.breach != EF_H2_CALM:
            self.calm(self.breach)
            return n
        self.turn_to(None)
        if used < 0:
            self.terminate(NGHTTP2_PROTOCOL_ERROR, LOST_PROTOCOL)
            return n
        self.keep_block(H2_ACK_MS)
        if self.dial is not None and self.draining:  # GOAWAY beside its first SETTINGS: it was a connection for nobody
            self.terminate(NGHTTP2_NO_ERROR, LOST_RESET)
        elif self.dial is not None and self.room and not self.connection.closed:
            dial, self.dial = self.dial, None
            self.ready_by = 0
            dial.on_ready(self)
        self.mark()
        return n

    cdef int on_settings(self) except -1:
        cdef uint32_t most = nghttp2_session_get_remote_settings(self.frames, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
        self.room = min(most, self.settings.h2_up_streams)
        self.connects = nghttp2_session_get_remote_settings(self.frames, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) == 1
        self.freed = True
        return 0

    cdef const ef_head_limits *limits(self) noexcept:
        return &H2_TRAILER_LIMITS if self.is_trailer else &self.settings.response_limits

    cdef int on_begin_block(self, int32_t id, bint begins) except -1:
        cdef H2Call call = h2_call(self.frames, id)
        self.block_by = 0
        self.block = 0
        if call is not None and call.user is not None:  # or nobody waits for it any more
            self.begin_block(id, EF_H2_TRAILERS if call.answered else EF_H2_RESPONSE, self.tls is not None)
        return 0

    cdef int turn_to(self, H2Call call) except -1:
        """What the user of another one was told is flushed first: all of them are gathered in one place."""
        cdef H2Call before = self.current
        if before is call:
            return 0
        self.current = call
        return before.flush() if before is not None else 0

    # --- frames to the backend -------------------------------------------------------------------------------------

    cdef int fail_later(self, H2Call call) except -1:
        """Its user is in the middle of a call."""
        call.out.ended = True
        self.failed.append(call)
        return self.mark()

    cdef int on_turn_end(self) except -1:
        cdef H2Call call
        cdef list failed
        while self.failed:
            failed, self.failed = self.failed, []
            for call in failed:
                if call.session is not None:
                    call.detach(NGHTTP2_INTERNAL_ERROR)
                call.lost(call.why)
            self.turn_to(None)
        self.flush()
        if self.breach != EF_H2_CALM:
            self.calm(self.breach)
        if self.freed and not self.connection.closed:
            self.look()
        return self.rearm() if not self.connection.closed else 0

    cdef int flush(self) except -1:
        """All that the backend's windows and its socket take."""
        cdef Connection connection = self.connection
        cdef Out *out = &self.engine.h2_out
        cdef bint more = True, broken
        cdef H2Call call
        cdef list woken
        if self.busy or connection.closed:
            return 0
        while more and not connection.write_paused and not connection.closed:
            more = self.gather()
            if connection.closed:
                return 0
            if out.size:
                self.engine.count_n(G_UPSTREAM_BYTES_SENT, out.size)
                broken = connection.broken
                connection.send(out.data, out.size)
                broken = connection.broken and not broken and connection.wire is None  # the kernel took nothing of this
                for call in self.fresh:
                    call.unprocessed = broken
                self.fresh.clear()
        self.turn_to(None)
        self.watch_writes(self.engine.wheel.now, self.settings.stream_idle_timeout)
        if self.woken:
            woken, self.woken = self.woken, []
            for call in woken:
                if call.user is not None and not call.write_paused:
                    call.user.on_up_writable(True)
        if not connection.closed and not nghttp2_session_want_read(self.frames) and not nghttp2_session_want_write(self.frames):
            return self.over(LOST_PROTOCOL)  # nghttp2 has ended it
        return 0

    cdef int on_writable(self, bint writable) except -1:
        if not writable:
            return 0  # each stream says so when it has enough
        self.write_by = 0
        return self.mark()

    cdef int took(self, void *stream, size_t n) except -1:
        (<H2Call>stream).took(n)
        return 0

    # --- ends ------------------------------------------------------------------------------------------------------

    cdef int on_stream_over(self, int32_t id, uint32_t code) except -1:
        cdef H2Call call = self.streams.pop(id, None)
        if call is None:
            return 0
        call.close(code)
        return self.on_freed()

    cdef int on_freed(self) except -1:
        """There is room for one more, or nothing left to do."""
        self.freed = True
        return self.mark()

    cdef int look(self) except -1:
        """What becomes of the room that there is."""
        self.freed = False
        if self.is_idle():
            if self.draining or self.used_up or not self.endpoint.is_regular() or self.engine.closing or not self.is_current():
                return self.terminate(NGHTTP2_NO_ERROR, LOST_RESET)
            if not self.idle_by:
                self.idle_by = self.engine.wheel.now + self.settings.upstream_idle
        return self.cluster.on_capacity(self) if self.cluster.pending.waiting() else 0

    cdef int drain(self) except -1:
        """No more requests; those that it has go on."""
        self.draining = True
        if self.paced:
            h2_look_at_paced(self, self.engine.wheel.now)
        return self.on_freed()

    cdef int use_up(self) except -1:
        """As `drain`, but for requests that have room and have not been written: these may be."""
        self.used_up = True
        return self.on_freed()

    cdef int suspect(self) except -1:
        """A request on it took too long: is the backend there at all?"""
        cdef int64_t now = self.engine.wheel.now
        if self.connection.closed or self.ping_by or now - self.heard < H2_SILENCE_MS:
            return 0
        self.ping(now)
        return self.mark()

    cdef int calm(self, int breach) except -1:
        """It costs more than its answers are worth."""
        self.breach = EF_H2_CALM
        self.engine.count(G_UPSTREAM_H2_BREACHES)
        return self.terminate(NGHTTP2_ENHANCE_YOUR_CALM, LOST_PROTOCOL)

    cdef int terminate(self, uint32_t code, UpLost why) except -1:
        """Say why, and nothing more."""
        if self.connection.closed:
            return 0
        nghttp2_session_terminate_session(self.frames, code)
        self.draining = True
        self.release_calls(why)
        self.flush()
        return self.over(why)

    cdef int over(self, UpLost why) except -1:
        """The last frame is out."""
        cdef PoolDial dial = self.dial
        if self.connection.closed:
            return 0
        self.draining = True
        self.dial = None
        self.connection.shut(False)
        if why == LOST_PROTOCOL and (dial is not None or self.load()):
            self.engine.count(G_UPSTREAM_PROTOCOL_ERRORS)
        if dial is not None:
            dial.on_refused()
        return self.release_calls(why)

    cdef int release_calls(self, UpLost why) except -1:
        """Each user hears of it, whatever another one does about it."""
        cdef H2Call call
        cdef list calls = [*self.streams.values(), *self.unborn]
        self.streams.clear()
        self.unborn.clear()
        self.paced.clear()
        for call in calls:
            if call.id and self.frames != NULL:
                nghttp2_session_set_stream_user_data(self.frames, call.id, NULL)
            try:
                call.lost(why)
                call.session = None
                queue_free(&call.out.queue)
            except BaseException:
                call.session = None
                _log.exception("http2: the end of a stream could not be processed")
        return self.turn_to(None)

    cdef int on_eof(self) except -1:
        return self.connection.shut(True)  # no answer can come any more

    cdef int on_hangup(self) except -1:
        return self.connection.shut(True)

    cdef int on_lost(self) except -1:
        cdef PoolDial dial = self.dial
        self.draining = True
        self.dial = None
        if self.opened:
            self.engine.count_down(G_UPSTREAM_CONNECTIONS_ACTIVE)
            self.cluster.lost_shared(self)
        if dial is not None:
            dial.on_failed(self.connection.why, self.connection.error)
        self.release_calls(LOST_RESET)
        nghttp2_session_del(self.frames)
        self.frames = NULL
        self.woken = self.fresh = self.failed = None
        self.current = None
        return self.cluster.serve_pending()

    cdef int stop(self, bint abort) except -1:
        """End at once: with a reset, or as soon as nothing is in flight."""
        return self.connection.shut(True) if abort else self.drain()

    # --- time ------------------------------------------------------------------------------------------------------

    cdef int rearm(self) except -1:
        return self.arm_first(self.ready_by or self.pace_at)

    cdef int on_deadline(self, int64_t now) except -1:
        cdef Connection connection = self.connection
        cdef size_t unsent = connection.unsent()
        if self.ready_by and self.ready_by <= now:
            return connection.cut(END_TIMED_OUT, ETIMEDOUT)
        if self.write_by and self.write_by <= now:
            if unsent >= self.unsent:
                return connection.shut(True)
            self.unsent = unsent
            self.write_by = now + self.settings.stream_idle_timeout
        if self.ack_by and self.ack_by <= now:
            return self.terminate(NGHTTP2_SETTINGS_TIMEOUT, LOST_PROTOCOL)
        if self.block_by and self.block_by <= now:
            return self.terminate(NGHTTP2_PROTOCOL_ERROR, LOST_PROTOCOL)
        if self.ping_by and self.ping_by <= now:
            return connection.shut(True)
        if self.idle_by and self.idle_by <= now:
            self.idle_by = 0
            if self.is_idle():
                return self.terminate(NGHTTP2_NO_ERROR, LOST_RESET)
        if self.ping_at and self.ping_at <= now:
            self.ping_silent(now, self.settings.h2_up_ping, self.load() > 0)
        if self.look_at and self.look_at <= now:
            h2_look_at_hung_up(self, now)
        if self.pace_at and self.pace_at <= now:
            h2_look_at_paced(self, now)
        self.mark()
        return self.rearm()
