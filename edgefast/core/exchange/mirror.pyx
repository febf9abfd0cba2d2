# Mirror: sends the same head and body to another cluster; the answer is read and dropped.
#
# In: what the exchange sends. Out: a copy, invisible to the client. It has its own connection and its own deadline. While the mirror
# connects or does not read, the copy holds at most `mirrorBuffer` bytes. All copies of a worker hold at most MIRROR_MEMORY beyond
# MIRROR_FREE each. Every failure ends the copy, is counted and logged by reason, and never ends the request (HTTPRequestMirrorFilter).

cdef class Mirror(UpstreamUser):
    def __dealloc__(self):
        out_free(&self.head)
        out_free(&self.body)
        out_free(&self.trailers)

    cdef int open(self, Exchange ex, Cluster cluster) except -1:
        self.engine = ex.engine
        self.settings = ex.settings
        self.outlier, self.breaker, self.check, self.panic = ex.outlier, ex.breaker, ex.check, ex.panic
        self.method = ex.method
        self.unsized = ex.body.unsized
        self.grpc = ex.grpc
        self.announced = ex.body.announced
        self.takes_trailers = ex.takes_trailers
        self.balance, self.hash_key, self.zones = ex.balance, ex.hash_key, ex.zones
        out_reserve(&self.head, ex.head.size)
        out_raw(&self.head, ex.head.data, ex.head.size)
        self.cluster = cluster
        self.rearm()
        self.engine.mirrors.add(self)
        self.engine.count(G_MIRRORED)
        self.streams = ex.body.expected and not ex.body.done and ex.body.left != 0 and cluster.protocol != SPEAKS_H2
        self.source = ex.origin()
        if self.streams and not cluster.share().try_enter(self):  # a copy waits for nobody's body
            return self.drop(MIRROR_CROWDED)
        return cluster.acquire(self)

    cdef int rearm(self) except -1:
        """The deadline: the route timeout's default since the last bytes of the request came."""
        return self.engine.wheel.arm(self, self.engine.wheel.now + (self.settings.route_timeout or 15000))

    cdef int request_body(self, iovec *iov, int n, size_t total) except -1:
        cdef int i
        if self.over:
            return 0
        self.progress(total)
        self.rearm()
        if self.up is not None and not self.up.write_paused:
            return self.write(iov, n, total)
        if self.hold(total):
            out_reserve(&self.body, total)
            for i in range(n):
                out_raw(&self.body, iov[i].iov_base, iov[i].iov_len)
        return 0

    # --- memory ----------------------------------------------------------------------------------------------------

    cdef bint hold(self, size_t total) except -1:
        """Count more bytes; False: they exceed the limit, and the copy has ended."""
        cdef size_t held = self.held + total
        if held > self.settings.mirror_buffer:
            self.drop(MIRROR_BEHIND)
            return False
        if held > MIRROR_FREE and self.engine.copied - self.borrowed + (held - MIRROR_FREE) > MIRROR_MEMORY:
            self.drop(MIRROR_FULL)
            return False
        self.holds(held)
        return True

    cdef void holds(self, size_t held) noexcept:
        cdef size_t borrowed = held - MIRROR_FREE if held > MIRROR_FREE else 0
        self.held = held
        self.engine.copied += borrowed - self.borrowed
        self.borrowed = borrowed

    # --- the request -----------------------------------------------------------------------------------------------

    cdef int request_trailers(self, Out *lines) except -1:
        out_reserve(&self.trailers, lines.size)
        out_raw(&self.trailers, lines.data, lines.size)
        return 0

    cdef int request_end(self) except -1:
        self.ended = True
        self.complete()
        if self.over:
            return 0
        self.rearm()
        if self.up is not None and not self.up.write_paused:
            return self.write(NULL, 0, 0)
        return 0

    cdef int write(self, iovec *iov, int n, size_t total) except -1:
        cdef Out *head = NULL
        if not self.head_sent:
            self.head_sent = True
            head = &self.head
        self.end_sent = self.ended
        self.up.write(head, iov, n, total, self.ended, &self.trailers)
        if self.up is not None:
            self.holds(self.up.unsent())
        return 0

    cdef int write_kept(self) except -1:
        """Send the bytes that waited for the connection, or for the mirror to read."""
        cdef iovec kept
        kept.iov_base = self.body.data
        kept.iov_len = self.body.size
        self.write(&kept, 1 if self.body.size else 0, self.body.size)
        out_free(&self.body)
        return 0

    cdef int on_up_ready(self, Outbound up) except -1:
        self.up = up
        up.begin(self, self.method, self.unsized, self.announced, None, self.takes_trailers)  # upgrade requests are not copied
        return self.write_kept()

    cdef int on_up_writable(self, bint writable) except -1:
        if not writable or self.up is None:
            return 0
        if not self.end_sent and (self.body.size or self.ended):
            return self.write_kept()
        self.holds(self.up.unsent())
        return 0

    cdef int on_up_failed(self, UpFailure why) except -1:
        return self.drop(MIRROR_UNREACHABLE)

    cdef int on_response_head(self, const uint8_t *base, ef_head *head) except -1:
        return 0

    cdef int on_response_body(self, const uint8_t *data, size_t n) except -1:
        return 0

    cdef int on_response_flush(self) except -1:
        return 0

    cdef int on_response_end(self) except -1:
        self.up = None
        return self.close()

    cdef int on_up_lost(self, int why) except -1:
        self.up = None
        return self.drop(MIRROR_LOST)

    cdef int on_deadline(self, int64_t now) except -1:
        return self.drop(MIRROR_TIMEOUT)

    cdef bytes origin(self):
        return self.source

    cdef int evict(self) except -1:
        return self.drop(MIRROR_CROWDED)

    # --- ends ------------------------------------------------------------------------------------------------------

    cdef int stop(self) except -1:
        """The request has ended before its body did, or the worker stops."""
        return self.drop(MIRROR_REQUEST)

    cdef int drop(self, MirrorDrop why) except -1:
        """Drop the copy."""
        if self.over:
            return 0
        self.engine.count(G_MIRRORS_DROPPED)
        self.engine.count(G_MIRROR_DROPS + <int>why)
        if why != MIRROR_REQUEST:
            self.report(why)
        return self.close()

    cdef int report(self, MirrorDrop why) except -1:
        """A log line, for each cluster one in MIRROR_TOLD_MS."""
        cdef Cluster cluster = self.cluster
        cdef int64_t now = self.engine.wheel.now
        cluster.mirror_unreported += 1
        if cluster.mirror_reported and now - cluster.mirror_reported < MIRROR_TOLD_MS:
            return 0
        cluster.mirror_reported = now
        _log.warning(
            "mirror: copy dropped: cluster=%s reason=%s held_bytes=%d dropped_since_last_line=%d",
            cluster.name, MIRROR_DROPS[<int>why], self.held, cluster.mirror_unreported,
        )
        cluster.mirror_unreported = 0
        return 0

    cdef int close(self) except -1:
        cdef Outbound up = self.up
        if self.over:
            return 0
        self.over = True
        self.holds(0)
        out_free(&self.body)  # a connection that is being made, or a queue, may still refer to this copy: it holds no body
        self.stop_waiting()
        self.ticket += 1
        self.up = None
        self.engine.wheel.disarm(self)
        self.engine.mirrors.discard(self)
        self.complete()
        if up is not None:
            up.drop(CUT_CANCEL)
        return 0
