# Upstream user: the user of an upstream connection: its events, and the required progress of an incomplete body.
#
# In: events of a connection, bytes of the request as they come. Out: nothing; exchanges and mirrors implement the effects.

cdef class UpstreamUser(Timer):
    cdef int on_up_ready(self, Outbound up) except -1:
        raise NotImplementedError

    cdef int on_up_failed(self, UpFailure why) except -1:
        raise NotImplementedError

    cdef int on_response_info(self, const uint8_t *base, ef_head *head) except -1:
        return 0

    cdef int on_response_head(self, const uint8_t *base, ef_head *head) except -1:
        """0: take the response. 1: drop it together with its connection (it will be tried again, or is of no use)."""
        raise NotImplementedError

    cdef int on_response_body(self, const uint8_t *data, size_t n) except -1:
        """Body bytes without framing; they must stay readable until on_response_flush."""
        raise NotImplementedError

    cdef int on_response_trailers(self, const uint8_t *lines, size_t n) except -1:
        """Fields behind the body, "name: value" lines; on_response_end follows at once."""
        return 0

    cdef int on_response_end(self) except -1:
        raise NotImplementedError

    cdef int on_response_flush(self) except -1:
        raise NotImplementedError

    cdef int on_up_lost(self, int why) except -1:
        raise NotImplementedError

    cdef int on_up_writable(self, bint writable) except -1:
        return 0

    cdef bint takes_bulk(self) noexcept:
        """A large read can go on at once: nobody's memory has to hold it."""
        return False

    cdef int stop_waiting(self) except -1:
        """It wants no connection any more, or has one."""
        cdef FairQueue queue = self.waits_in  # which may be nobody else's when it has left
        self.waiting = False
        return queue.leave(self) if queue is not None else 0

    # --- tries -------------------------------------------------------------------------------------------------------------------------

    cdef uint64_t tried_of(self, Cluster cluster) noexcept:
        """Endpoints that it need not ask again; the numbers of a set that is no more say nothing of the one that is."""
        return self.tried if self.tried_at == cluster.version else 0

    cdef int note_tried(self) except -1:
        """Its endpoint has had its try."""
        cdef Endpoint endpoint = self.endpoint
        if endpoint is None or not endpoint.is_regular():
            return 0
        if endpoint.index >= 64:
            if self.tried_past is None:
                self.tried_past = []
            if endpoint not in self.tried_past:
                self.tried_past.append(endpoint)
            return 0
        self.tried = self.tried_of(endpoint.cluster) | <uint64_t>1 << endpoint.index
        self.tried_at = endpoint.cluster.version
        return 0

    cdef bint has_untried(self, Cluster cluster) noexcept:
        """There is another endpoint."""
        cdef uint32_t many = popcount(self.tried_of(cluster))
        if self.tried_past is not None:
            many += <uint32_t>len(self.tried_past)
        return many < cluster.size

    # --- a body that is still coming (bodyshare.pyx) ---------------------------------------------------------------------------------

    cdef bytes origin(self):
        """What tells its client from others; None: nothing does."""
        return None

    cdef bint keeps_waiting(self) noexcept:
        """The client is what everybody waits for: not the backend, and not an answer that has begun."""
        return self.up is not None and not self.up.write_paused and self.settings.body_rate != 0

    cdef bint comes(self) noexcept:
        """Its bytes are coming, or would if they were read: so it goes before those whose bytes are not."""
        return False

    cdef int share_left(self) except -1:
        """There is room for what was gathered because there was none."""
        return 0

    cdef void set_out(self) noexcept:
        """From now on it is the client that is waited for; what it has brought already stays (Behind: both never go back)."""
        self.held_at = self.engine.wheel.now
        self.brought = 0
        self.progress_until = max(self.progress_until, self.engine.wheel.now + BODY_GRACE_MS)
        self.trusted_until = max(self.trusted_until, self.engine.wheel.now + BODY_PATIENCE_MS)

    cdef int evict(self) except -1:
        """End it: others wait for its connection."""
        raise NotImplementedError

    cdef int64_t slow_rate(self):
        """Bytes a second that its client moves, when these are few and nothing else is waited for (fair_share_eviction.pyx); else -1."""
        cdef int64_t spent = self.engine.wheel.now - self.held_at, rate
        if self.place is None or spent < EVICTION_GRACE_MS or not self.keeps_waiting():
            return -1
        rate = <int64_t>self.brought * 1000 // spent
        return rate if rate < <int64_t>self.settings.body_rate * EVICTION_RATE or self.trusted_until <= self.engine.wheel.now else -1

    cdef int yield_connection(self) except -1:
        """To others, who hold less. Returns how many did: it may have ended since it was found."""
        if self.place is None or self.up is None:
            return 0
        self.engine.count(G_BODIES_GAVE_WAY)
        self.evict()
        return 1

    cdef void progress(self, size_t n) noexcept:
        """Body bytes have come. They pay for some time, at most for BODY_GRACE_MS: a burst buys no long silence."""
        cdef int64_t now = self.engine.wheel.now, most = now + BODY_GRACE_MS
        cdef int64_t paid
        self.brought += n
        if self.settings.body_rate == 0:
            return
        paid = <int64_t>(n * 1000 // self.settings.body_rate)
        self.progress_until = min(max(self.progress_until, now) + paid, most)
        self.trusted_until = min(max(self.trusted_until, now) + paid, most)

    cdef int complete(self) except -1:
        """The request needs no place any more."""
        cdef BodyShare place = self.place  # as above
        self.streams = False
        return place.give_back(self) if place is not None else 0
