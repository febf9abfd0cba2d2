# Dispatcher: sends checks to a store over the network: together, once per turn of the loop, with one deadline each.
#
# In: checks of waiting requests. Out: batches for the store, and checks without an answer in time. All checks of one turn of the loop
# become one batch: equal keys are one check. While few requests wait for the store, the next turn's batch follows at once. While many wait,
# it waits until they have their answers, or for a small part of the store's time, and grows. A waiting request costs no task, future or
# timer of its own. A late answer affects only the requests that waited for it.

cdef class Dispatcher:
    cdef int refuse_all(self, list checks) except -1:
        """No answer will come for these: the limiter's policy decides."""
        raise NotImplementedError

    cdef int enqueue(self, Exchange ex, Limit limit, bytes key) except -1:
        cdef Check check = self.turn.get(key)
        if check is None or check.limit != limit.requests or check.sliding != limit.sliding or check.n == LIMIT_MOST:
            check = Check.__new__(Check)
            check.key = key
            check.limit = limit.requests
            check.unit = limit.unit
            check.sliding = limit.sliding
            check.due = self.engine.wheel.now + self.timeout
            check.ex = ex
            check.of = limit
            check.n = 1
            self.turn[key] = check
            self.queue.append(check)
        else:
            check.n += 1
            if check.more is None:
                check.more = []
            check.more.append(ex)
            check.more.append(limit)
        if self.scheduled:
            return 0
        if self.flying < LIMIT_ALONE:
            self.scheduled = True
            self.engine.loop.call_soon(self._on_turn)
        elif self.pacer is None:
            self.pacer = self.engine.loop.call_later(self.pace, self._on_pace)
        return 0

    def _on_pace(self):
        self.pacer = None
        if self.queue:
            self.send()
        if self.queue and self.pacer is None:
            self.pacer = self.engine.loop.call_later(self.pace, self._on_pace)

    def _on_turn(self):
        self.scheduled = False
        if self.queue and self.flying < LIMIT_ALONE:
            self.send()

    cdef int send(self) except -1:
        """One batch, of all that came since the last one left."""
        cdef Check check
        cdef Batch batch
        cdef list checks = self.queue
        if len(checks) > LIMIT_BATCH:
            self.queue = checks[LIMIT_BATCH:]
            checks = checks[:LIMIT_BATCH]
            for check in checks:
                self.turn.pop(check.key, None)
        else:
            self.queue = []
            self.turn = {}
        if not self.store.available:
            checks = checks + self.queue
            self.queue = []
            self.turn = {}
            return self.refuse_all(checks)
        self.engine.wheel.refresh()
        check = checks[0]
        if check.due <= self.engine.wheel.now:  # the loop was held up for longer than they may wait
            late = [check for check in checks if check.due <= self.engine.wheel.now]
            checks = checks[len(late):]
            self.engine.count(G_LIMIT_TIMEOUTS)
            self.refuse_all(late)
            if not checks:
                return 0
        batch = Batch.__new__(Batch)
        batch.sent = now_us()
        batch.sent_ms = self.engine.wheel.now
        batch.left = <int>len(checks)
        for check in checks:
            check.batch = batch
            self.flying += <int>check.n
        if self.oldest == len(self.in_flight):
            self.oldest = 0
            self.in_flight = checks[:]
        else:
            self.in_flight += checks
        if self.timer is None:
            check = checks[0]
            self.timer = self.engine.loop.call_later(max(check.due - batch.sent_ms, 1) / 1000.0, self._on_timer)
        self.engine.count(G_LIMIT_BATCHES)
        self.store.submit(checks)
        return 0

    cdef Check find_oldest(self):
        """The check that has waited longest for its answer; None: nothing is under way."""
        cdef Check check
        while self.oldest < len(self.in_flight):
            check = self.in_flight[self.oldest]
            if not check.done:
                if self.oldest > LIMIT_BATCH:  # a store that is never idle must not make this grow
                    del self.in_flight[:self.oldest]
                    self.oldest = 0
                return check
            self.oldest += 1
        self.in_flight = []
        self.oldest = 0
        return None

    def _on_timer(self):
        """One timer for all that is under way: it looks at whoever has waited longest, maybe for a batch before."""
        cdef int64_t now = self.engine.wheel.refresh()
        cdef Check check = self.find_oldest()
        self.timer = None
        if check is None:
            return
        if now < check.due:
            self.timer = self.engine.loop.call_later((check.due - now) / 1000.0, self._on_timer)
            return
        if not check.graced:
            # A worker that was held up for that long finds this timer first and the answer in its socket afterwards: a timer
            # of a millisecond lets the loop look at its sockets once.
            check.graced = True
            self.timer = self.engine.loop.call_later(0.001, self._on_timer)
            return
        self.expire(now)
        check = self.find_oldest()
        if check is not None:
            self.timer = self.engine.loop.call_later(max(check.due - now, 1) / 1000.0, self._on_timer)
        if self.queue and (self.flying < LIMIT_ALONE or not self.store.available):
            self.send()

    cdef int expire(self, int64_t now) except -1:
        """By policy: those whose time is over. The others go on waiting, and the store may still answer them."""
        cdef Check check
        cdef list late = []
        cdef int64_t moment = now_us()
        cdef Py_ssize_t at = self.oldest
        while at < len(self.in_flight):
            check = self.in_flight[at]
            if check.due > now:
                break
            if not check.done:
                self.land(check, moment)
                late.append(check)
            at += 1
        self.engine.count(G_LIMIT_TIMEOUTS)
        self.store.expire(late)
        return self.refuse_all(late)

    cdef int give_up(self) except -1:
        """By policy: what is under way, and what waits behind it; that has waited for the store as well."""
        cdef list lost = self.in_flight + self.queue
        self.flying = 0
        self.in_flight = []
        self.oldest = 0
        self.queue = []
        self.turn = {}
        return self.refuse_all(lost)

    cdef int land(self, Check check, int64_t now) except -1:
        """Its answer is here."""
        self.flying -= <int>check.n
        check.batch.left -= 1
        if check.batch.left == 0:
            self.engine.count_n(G_LIMIT_STORE_US, now - check.batch.sent)
        return 0

    cdef int go_on(self) except -1:
        """The next batch leaves first: the store works while the answers go out."""
        return self.send() if self.queue and self.flying < LIMIT_ALONE else 0
