# The limiter: who is counted, by which store, and when the answer is there.
#
# In: requests that matched a rule with limits. Out: pass, 429, or a wait for the store. With the memory store a check is a call into
# csrc/limit.c. With Redis all checks of one turn of the loop become one batch: equal keys are one check. While few requests wait for
# the store the next turn's batch follows at once; while many do, it waits until they have their answers, or for a small part of the
# store's time, and grows. A waiting request costs no task, future or timer of its own. Each has one deadline for the store; past it, or
# while the store is known to be down, the policy answers. A late answer costs those who waited for it, and nobody else.

cdef class Limiter:
    def __cinit__(self, Engine engine, segment):
        cdef Py_buffer view
        self.engine = engine
        self.segment = memoryview(segment)
        PyObject_GetBuffer(self.segment, &view, PyBUF_WRITABLE)
        self.memory = <ef_rooms *>view.buf
        size = view.len
        PyBuffer_Release(&view)  # the memoryview keeps the mapping
        if ef_rooms_check(self.memory, size) < 0:
            raise ValueError("limits is not a store of counters")
        self.turn = {}
        self.queue = []
        self.in_flight = []
        self.oldest = 0
        self.spent = SpentCache()

    def use(self, store, int64_t timeout, bint fail_closed):
        """Ask this store from now on; None is the memory store. What waits for another one is answered by policy."""
        self.give_up()
        for timer in (self.timer, self.pacer):
            if timer is not None:
                timer.cancel()
        self.timer = self.pacer = None
        self.pace = max(timeout / <double>LIMIT_PACES, 1.0) / 1000.0
        self.spent.clear()
        self.store = store
        self.timeout = timeout
        self.fail_closed = fail_closed

    cdef Verdict ask(self, Exchange ex, const ef_request *request):
        """The verdict on a request; `left` > 0: Exchange.on_verdict() is called later. None: no limit counts it."""
        cdef Verdict verdict = None
        cdef Limit limit
        cdef bytes key
        cdef list asked = None
        for limit in ex.rule.limits:
            key = limit.key_of(ex, request)
            if key is None:
                continue
            if verdict is None:
                verdict = Verdict.__new__(Verdict)
            if not self.take_now(verdict, limit, key):
                if asked is None:
                    asked = []
                asked.append(limit)
                asked.append(key)
        if asked is not None:
            ex.verdict = verdict
            for i in range(0, len(asked), 2):
                # One that is refused already does not wait; every limit that matches counts it all the same.
                if not verdict.over:
                    verdict.left += 1
                self.enqueue(None if verdict.over else ex, <Limit>asked[i], <bytes>asked[i + 1])
        return verdict

    cdef int64_t now(self) noexcept:
        """The memory store's time, in milliseconds since 1970: no wall clock that is set moves it."""
        cdef timespec ts
        clock_gettime(CLOCK_BOOTTIME, &ts)
        return ef_rooms_now(self.memory, <uint64_t>ts.tv_sec * 1000 + <uint64_t>(ts.tv_nsec // 1000000))

    cdef bint take_now(self, Verdict verdict, Limit limit, bytes key) except -1:
        """Answer without waiting: what blocks everything, what is known to be spent, the memory store, a store that is down."""
        cdef ef_limit_result result
        cdef Spent spent
        cdef int64_t now, passed
        cdef int rc
        if limit.requests == 0:
            now = self.now()
            passed = now % (<int64_t>limit.unit * 1000)
            verdict.take(limit, True, 0, <int64_t>limit.unit * 1000 - passed, (now - passed) // 1000)
            return True
        if self.store is None:
            now = self.now()
            rc = ef_rooms_take(self.memory, <const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key),
                               PyBytes_GET_SIZE(limit.counter), 1, limit.requests, limit.unit, limit.sliding, now, &result)
            if rc < 0:
                self.engine.count(G_LIMIT_STORE_FULL)
                self.note_crowded(limit, <int64_t>result.reset_ms if rc == EF_ROOMS_SHARE else 1000)
                self.on_error(verdict, limit)
            else:
                verdict.take(limit, result.admitted == 0, result.remaining, result.reset_ms, result.window)
            return True
        spent = self.spent.find(limit.counter, key, limit.requests, self.engine.wheel.now)
        if spent is not None:
            ef_stat_add(&limit.row.cells[L_LOCAL_OVER], 1)
            verdict.take(limit, True, 0, spent.until - self.engine.wheel.now, spent.window)
            return True
        if not self.store.available:
            self.on_error(verdict, limit)
            return True
        return False

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

    def settle(self, list checks, bytes answers):
        """The store's answer to checks that went out together: 18 bytes for each, as ratelimit/script.py reads them."""
        cdef Check check
        cdef Py_ssize_t i
        cdef int64_t now = now_us()
        cdef list landed = []
        cdef const char *at = PyBytes_AS_STRING(answers)
        if PyBytes_GET_SIZE(answers) != ANSWER_SIZE * PyList_GET_SIZE(checks):
            raise ValueError("not one answer for each check")
        self.engine.wheel.refresh()
        for i in range(PyList_GET_SIZE(checks)):
            check = checks[i]
            if check.done:  # late
                continue
            check.done = True
            self.land(check, now)
            memcpy(&check.admitted, at + ANSWER_SIZE * i, 4)
            memcpy(&check.remaining, at + ANSWER_SIZE * i + 4, 4)
            memcpy(&check.reset_ms, at + ANSWER_SIZE * i + 8, 5)
            memcpy(&check.window, at + ANSWER_SIZE * i + 13, 5)
            if check.remaining == 0 and check.reset_ms > 0:
                # Counted from when the batch left, so that it ends early rather than late.
                self.spent.note(check.of.counter, check.key, check.limit, check.batch.sent_ms + check.reset_ms, check.window,
                                self.engine.wheel.now)
            landed.append(check)
        self.go_on()
        for check in landed:
            self.answer(check, now - check.batch.sent)

    def fail(self, list checks, str reason):
        """The store cannot answer these checks, which went out together."""
        cdef Check check
        cdef int64_t now = now_us()
        cdef list lost = []
        for check in checks:
            if not check.done:  # else late
                self.land(check, now)
                lost.append(check)
        if lost:
            self.engine.count(G_LIMIT_STORE_ERRORS)
            self.go_on()
            self.refuse_all(lost)

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

    cdef int answer(self, Check check, int64_t took) except -1:
        """Those who came first pass."""
        cdef Py_ssize_t i
        self.answer_one(check, 0, check.ex, check.of, took)
        if check.more is not None:
            for i in range(0, PyList_GET_SIZE(check.more), 2):
                self.answer_one(check, <uint32_t>(1 + i // 2), <Exchange>PyList_GET_ITEM(check.more, i),
                                <Limit>PyList_GET_ITEM(check.more, i + 1), took)
        return 0

    cdef int answer_one(self, Check check, uint32_t place, Exchange ex, Limit limit, int64_t took) except -1:
        cdef bint over = place >= check.admitted
        ef_stat_add(&limit.row.cells[L_STORE_US], took)
        if ex is None:
            limit.count(over)
            return 0
        ex.verdict.take(
            limit, over, check.remaining if over else check.remaining + (check.admitted - 1 - place), check.reset_ms, check.window
        )
        return self.one_less(ex)

    cdef int one_less(self, Exchange ex) except -1:
        ex.verdict.left -= 1
        if ex.verdict.left == 0 and not ex.finished:
            try:
                ex.on_verdict()
            except Exception:  # the others of the batch wait for their answers
                _log.exception("a request could not go on after its limits were asked")
                ex.down.shut(True)
        return 0

    cdef int refuse_all(self, list checks) except -1:
        """No answer will come for these."""
        cdef Check check
        cdef Py_ssize_t i
        for check in checks:
            if check.done:
                continue
            check.done = True
            self.refuse_one(check.ex, check.of)
            if check.more is not None:
                for i in range(0, PyList_GET_SIZE(check.more), 2):
                    self.refuse_one(<Exchange>PyList_GET_ITEM(check.more, i), <Limit>PyList_GET_ITEM(check.more, i + 1))
        return 0

    cdef int refuse_one(self, Exchange ex, Limit limit) except -1:
        if ex is None:
            ef_stat_add(&limit.row.cells[L_ERROR], 1)
            return 0
        self.on_error(ex.verdict, limit)
        return self.one_less(ex)

    cdef int on_error(self, Verdict verdict, Limit limit) except -1:
        ef_stat_add(&limit.row.cells[L_ERROR], 1)
        if self.fail_closed and not limit.shadow:
            verdict.failed = True
        else:
            verdict.passed_blind = True
        return 0

    cdef int note_crowded(self, Limit limit, int64_t reset_ms) except -1:
        """Tell, once until its window ends, that new values of a limit are not counted."""
        ef_stat_add(&limit.row.cells[L_NO_ROOM], 1)
        if self.on_crowded is not None and self.engine.wheel.now >= limit.crowded:
            limit.crowded = self.engine.wheel.now + reset_ms
            self.on_crowded(limit.route, limit.name, reset_ms)
        return 0

    def dump(self):
        store = "memory" if self.store is None else self.store.state()
        return {"store": store, "fail_closed": self.fail_closed, "spent": self.spent.count}
