# A mirrored request: the same head and body to another cluster, the answer read and dropped.
#
# In: what the exchange sends. Out: nothing that the client could notice. It has its own connection, its own deadline and at most
# MIRROR_LIMIT bytes waiting; whatever goes wrong ends the copy, counted, and never the request (HTTPRequestMirrorFilter).

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
        self.unsized = ex.unsized
        self.grpc = ex.grpc
        self.announced = ex.announced
        self.takes_trailers = ex.takes_trailers
        self.balance, self.hash_key, self.zones = ex.balance, ex.hash_key, ex.zones
        out_reserve(&self.head, ex.head.size)
        out_raw(&self.head, ex.head.data, ex.head.size)
        self.engine.wheel.arm(self, self.engine.wheel.now + (self.settings.route_timeout or 15000))
        self.engine.mirrors.add(self)
        self.engine.count(G_MIRRORED)
        self.streams = ex.expects_body and not ex.body_done and ex.left != 0 and cluster.protocol != SPEAKS_H2
        self.source = ex.origin()
        if self.streams and not cluster.share().try_enter(self):  # a copy waits for nobody's body
            return self.stop()
        return cluster.acquire(self)

    cdef int request_body(self, iovec *iov, int n, size_t total) except -1:
        cdef int i
        if self.over:
            return 0
        self.progress(total)
        if self.up is None or self.up.write_paused:
            if self.up is not None or self.body.size + total > MIRROR_LIMIT:
                return self.stop()
            out_reserve(&self.body, total)
            for i in range(n):
                out_raw(&self.body, iov[i].iov_base, iov[i].iov_len)
            return 0
        return self.write(iov, n, total)

    cdef int request_trailers(self, Out *lines) except -1:
        out_reserve(&self.trailers, lines.size)
        out_raw(&self.trailers, lines.data, lines.size)
        return 0

    cdef int request_end(self) except -1:
        self.ended = True
        self.complete()
        if not self.over and self.up is not None:
            return self.write(NULL, 0, 0)
        return 0

    cdef int write(self, iovec *iov, int n, size_t total) except -1:
        cdef Out *head = NULL
        if not self.head_sent:
            self.head_sent = True
            head = &self.head
        return self.up.write(head, iov, n, total, self.ended, &self.trailers)

    cdef int on_up_ready(self, Outbound up) except -1:
        cdef iovec kept
        self.up = up
        up.begin(self, self.method, self.unsized, self.announced, None, self.takes_trailers)  # what asks for another protocol is not copied
        kept.iov_base = self.body.data
        kept.iov_len = self.body.size
        return self.write(&kept, 1 if self.body.size else 0, self.body.size)

    cdef int on_up_failed(self, UpFailure why) except -1:
        self.engine.count(G_MIRRORS_DROPPED)
        return self.close()

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
        self.engine.count(G_MIRRORS_DROPPED)
        return self.close()

    cdef int on_deadline(self, int64_t now) except -1:
        return self.stop()

    cdef bytes origin(self):
        return self.source

    cdef int give_way(self) except -1:
        return self.stop()

    cdef int stop(self) except -1:
        if self.over:
            return 0
        self.engine.count(G_MIRRORS_DROPPED)
        return self.close()

    cdef int close(self) except -1:
        cdef Outbound up = self.up
        if self.over:
            return 0
        self.over = True
        out_free(&self.body)  # whoever still knows this copy (a connection that is being made, a queue) holds no body
        self.stop_waiting()
        self.ticket += 1
        self.up = None
        self.engine.wheel.disarm(self)
        self.engine.mirrors.discard(self)
        self.complete()
        if up is not None:
            up.drop(CUT_CANCEL)
        return 0
