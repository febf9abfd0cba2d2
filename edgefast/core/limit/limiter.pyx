# Limiter: selects the counters of a request and their store, and applies the answers.
#
# In: requests that matched a rule with limits. Out: pass, 429, or a wait for the store. With the memory store a check is a call into
# csrc/limit.c; with Redis checks go together (dispatcher.pyx). Past the deadline, or while the store is known to be down, the failure
# policy decides.

cdef class Limiter(Dispatcher):
    def __cinit__(self, Engine engine, segment):
        cdef Py_buffer view
        self.engine = engine
        self.segment = memoryview(segment)
        PyObject_GetBuffer(self.segment, &view, PyBUF_WRITABLE)
        self.memory = <ef_store *>view.buf
        size = view.len
        PyBuffer_Release(&view)  # the memoryview keeps the mapping
        if ef_store_check(self.memory, size) < 0:
            raise ValueError("limits is not a counter store")
        self.turn = {}
        self.queue = []
        self.in_flight = []
        self.oldest = 0
        self.spent = ExhaustedLimits()

    def join(self, health, uint32_t worker):
        """Count requests in progress with the other workers: behind the health records of the proxy. None, or no room there: alone."""
        cdef Py_buffer view
        cdef ef_health *segment
        cdef size_t size, extent
        if health is not None:
            self.in_progress_view = memoryview(health)
            PyObject_GetBuffer(self.in_progress_view, &view, PyBUF_WRITABLE)
            segment = <ef_health *>view.buf
            size = view.len
            PyBuffer_Release(&view)
            extent = ef_health_extent(segment)
            if size > extent and ef_local_check(<uint8_t *>segment + extent, size - extent) == 0:
                self.in_progress = <ef_limit *>(<uint8_t *>segment + extent)
                self.seat, self.seats = worker, ef_health_seats(segment)
                ef_held_forget(self.in_progress, self.seat, <uint32_t>(self.now() // 1000))  # of a predecessor, if the agent could not
                return
        size = ef_local_size(LIMIT_OWN_SETS)
        self.in_progress_view = memoryview(mmap(-1, size))
        PyObject_GetBuffer(self.in_progress_view, &view, PyBUF_WRITABLE)
        self.in_progress = <ef_limit *>view.buf
        PyBuffer_Release(&view)
        seed = os.urandom(16)
        self.seat, self.seats = 0, 1
        if ef_local_init(self.in_progress, size, LIMIT_OWN_SETS, <const uint8_t *>PyBytes_AS_STRING(seed)) < 0:
            raise ValueError("no memory for requests in progress")

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

    cdef LimitDecision ask(self, Exchange ex, const ef_request *request):
        """The decision on a request; `left` > 0: end_decision() is called later. None: no limit counts it."""
        cdef LimitDecision decision = ex.decision  # of the limits of this machine
        cdef Limit limit
        cdef bytes key
        cdef list asked = None
        for limit in ex.rule.limits:
            key = limit.key_of(ex, request)
            if key is None:
                continue
            if decision is None:
                decision = LimitDecision.__new__(LimitDecision)
            if not self.take_now(decision, limit, key):
                if asked is None:
                    asked = []
                asked.append(limit)
                asked.append(key)
        if asked is not None:
            ex.decision = decision
            for i in range(0, len(asked), 2):
                # One that is refused already does not wait; every limit that matches counts it all the same.
                if not decision.over:
                    decision.left += 1
                self.enqueue(None if decision.over else ex, <Limit>asked[i], <bytes>asked[i + 1])
        return decision

    cdef bint refuses(self, Exchange ex, const ef_request *request, list limits) except -1:
        """Count a request in limits of this machine. True: one of them refuses it, which is answered, and the others do not count it."""
        cdef LimitDecision decision = ex.decision
        cdef Limit limit
        cdef bytes key
        cdef list taken = None
        cdef Py_ssize_t i
        cdef bint over
        for limit in limits:
            key = limit.key_of(ex, request)
            if key is None:
                continue
            if decision is None:
                ex.decision = decision = LimitDecision.__new__(LimitDecision)
            over = self.hold(decision, limit, key) if limit.parallel else self.take_token(decision, limit, key)
            if not over:
                if not limit.parallel:
                    if taken is None:
                        taken = []
                    taken.append(limit)
                    taken.append(key)
                continue
            if limit.shadow:
                continue
            if taken is not None:
                for i in range(0, PyList_GET_SIZE(taken), 2):
                    limit = <Limit>PyList_GET_ITEM(taken, i)
                    key = <bytes>PyList_GET_ITEM(taken, i + 1)
                    ef_bucket_give_back(ef_store_tokens(self.memory), <const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key),
                                        PyBytes_GET_SIZE(limit.counter), limit.interval)
            self.release(decision)
            end_decision(ex)
            return True
        return False

    cdef bint take_token(self, LimitDecision decision, Limit limit, bytes key) except -1:
        """Whether a token bucket has none left for a request."""
        cdef ef_limit_result result
        cdef timespec ts
        cdef uint64_t now
        if limit.requests == 0:
            decision.take(limit, True, 0, <int64_t>limit.unit * 1000, 0)
            return True
        clock_gettime(CLOCK_BOOTTIME, &ts)
        now = ef_store_now(self.memory, 0) * 1000 + <uint64_t>ts.tv_sec * 1000000 + <uint64_t>(ts.tv_nsec // 1000)
        if ef_bucket_take(ef_store_tokens(self.memory), <const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key),
                          PyBytes_GET_SIZE(limit.counter), limit.interval, limit.burst, ef_bucket_time(now), &result) < 0:
            decision.take(limit, True, 0, 1000, 0)  # numbers that the compiler refuses: closed
            return True
        decision.take(limit, result.admitted == 0, result.remaining, <int64_t>result.reset_ms, 0)
        return result.admitted == 0

    cdef bint hold(self, LimitDecision decision, Limit limit, bytes key) except -1:
        """Whether as many requests are in progress as may be; else this is one of them until it ends."""
        cdef HeldRequest one = HeldRequest.__new__(HeldRequest)
        cdef int taken = ef_held_take(self.in_progress, <const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), self.seat,
                                      self.seats, limit.requests, <uint32_t>(self.now() // 1000), &one.held)
        if taken <= 0:
            if taken < 0:
                ef_stat_add(&limit.row.cells[L_NO_ROOM], 1)
            decision.take(limit, True, 0, 0, 0)
            return True
        if decision.held is None:
            decision.held = []
        decision.held.append(one)
        decision.take(limit, False, limit.requests - one.held.sum, 0, 0)
        return False

    cdef int release(self, LimitDecision decision) except -1:
        """A request is no longer in progress."""
        cdef HeldRequest one
        cdef uint32_t now = <uint32_t>(self.now() // 1000)
        if decision.held is not None:
            for one in decision.held:
                ef_held_release(&one.held, now)
            decision.held = None
        return 0

    cdef int64_t now(self) noexcept:
        """The memory store's time, in milliseconds since 1970: no wall clock that is set moves it."""
        cdef timespec ts
        clock_gettime(CLOCK_BOOTTIME, &ts)
        return ef_store_now(self.memory, <uint64_t>ts.tv_sec * 1000 + <uint64_t>(ts.tv_nsec // 1000000))

    cdef bint take_now(self, LimitDecision decision, Limit limit, bytes key) except -1:
        """Answer without waiting: what blocks everything, what is known to be spent, the memory store, a store that is down."""
        cdef ef_limit_result result
        cdef ExhaustedLimit spent
        cdef int64_t now, passed
        cdef int rc
        if limit.requests == 0:
            now = self.now()
            passed = now % (<int64_t>limit.unit * 1000)
            decision.take(limit, True, 0, <int64_t>limit.unit * 1000 - passed, (now - passed) // 1000)
            return True
        if self.store is None:
            now = self.now()
            rc = ef_store_take(self.memory, <const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key),
                               PyBytes_GET_SIZE(limit.counter), 1, limit.requests, limit.unit, limit.sliding, now, &result)
            if rc < 0:
                self.engine.count(G_LIMIT_STORE_FULL)
                self.note_crowded(limit, <int64_t>result.reset_ms if rc == EF_STORE_SHARE else 1000)
                self.on_error(decision, limit)
            else:
                decision.take(limit, result.admitted == 0, result.remaining, result.reset_ms, result.window)
            return True
        spent = self.spent.find(limit.counter, key, limit.requests, self.engine.wheel.now)
        if spent is not None:
            ef_stat_add(&limit.row.cells[L_LOCAL_OVER], 1)
            decision.take(limit, True, 0, spent.until - self.engine.wheel.now, spent.window)
            return True
        if not self.store.available:
            self.on_error(decision, limit)
            return True
        return False

    def settle(self, list checks, bytes answers):
        """The store's answer to checks that went out together: 18 bytes for each, as rate_limit/script.py reads them."""
        cdef Check check
        cdef Py_ssize_t i
        cdef int64_t now = now_us()
        cdef list landed = []
        cdef const char *at = PyBytes_AS_STRING(answers)
        if PyBytes_GET_SIZE(answers) != ANSWER_SIZE * PyList_GET_SIZE(checks):
            raise ValueError("the counter store did not return one answer for each check")
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
        ex.decision.take(
            limit, over, check.remaining if over else check.remaining + (check.admitted - 1 - place), check.reset_ms, check.window
        )
        return self.one_less(ex)

    cdef int one_less(self, Exchange ex) except -1:
        ex.decision.left -= 1
        if ex.decision.left == 0 and not ex.finished:
            try:
                end_decision(ex)
            except Exception:  # the others of the batch wait for their answers
                _log.exception("rate limits: request failed after its limits were checked")
                ex.down.abort(CUT_INTERNAL)
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
        self.on_error(ex.decision, limit)
        return self.one_less(ex)

    cdef int on_error(self, LimitDecision decision, Limit limit) except -1:
        ef_stat_add(&limit.row.cells[L_ERROR], 1)
        if self.fail_closed and not limit.shadow:
            decision.failed = True
        else:
            decision.passed_blind = True
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
