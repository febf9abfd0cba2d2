# The limiter: who is counted, by which store, and when the answer is there.
#
# In: requests that matched a rule with limits. Out: pass, 429, or a wait for the store. With the memory store a check is a call into
# csrc/limit.c. With Redis all checks of one turn of the loop become one batch: equal keys are one check, only one batch is under way,
# what comes meanwhile is the next one. A waiting request costs no task, future or timer of its own. The store has one deadline; past
# it, or while it is known to be down, the policy answers.

cdef class Check:
    @property
    def name(self):
        """The key's words in a call to Redis, as they go out (ratelimit/script.py name_words)."""
        cdef char text[32]
        cdef Py_ssize_t length = PyBytes_GET_SIZE(self.key)
        cdef int n = snprintf(
            text, sizeof(text), "$%zu\r\nef:{%02x}:", <size_t>(length + 8),
            ef_crc32(<const uint8_t *>PyBytes_AS_STRING(self.key), length) & 63
        )
        cdef bytes words = PyBytes_FromStringAndSize(NULL, n + length + 2)
        cdef char *to = PyBytes_AS_STRING(words)
        memcpy(to, text, n)
        memcpy(to + n, PyBytes_AS_STRING(self.key), length)
        memcpy(to + n + length, b"\r\n", 2)
        return words

    @property
    def terms(self):
        """n, limit, unit, sliding as window.lua unpacks them (ratelimit/script.py term_words)."""
        cdef char text[18]
        cdef uint16_t n = <uint16_t>self.n
        cdef uint8_t sliding = self.sliding
        memcpy(text, b"$11\r\n", 5)
        memcpy(text + 5, &n, 2)
        memcpy(text + 7, &self.limit, 4)
        memcpy(text + 11, &self.unit, 4)
        text[15] = <char>sliding
        memcpy(text + 16, b"\r\n", 2)
        return PyBytes_FromStringAndSize(text, 18)


cdef class Spent:
    pass


cdef class Limiter:
    def __cinit__(self, Engine engine, segment):
        cdef Py_buffer view
        self.engine = engine
        self.segment = memoryview(segment)
        PyObject_GetBuffer(self.segment, &view, PyBUF_WRITABLE)
        self.memory = <ef_limit *>view.buf
        size = view.len
        PyBuffer_Release(&view)  # the memoryview keeps the mapping
        if ef_limit_check(self.memory, size) < 0:
            raise ValueError("limits is not a counter segment")
        self.turn = {}
        self.queue = []
        self.in_flight = []
        self.spent = {}

    def use(self, store, int64_t timeout, bint fail_closed):
        """Ask this store from now on; None is the memory store. What waits for another one is answered by policy."""
        self.give_up()
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
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

    cdef bint take_now(self, Verdict verdict, Limit limit, bytes key) except -1:
        """Answer without waiting: what blocks everything, what is known to be spent, the memory store, a store that is down."""
        cdef ef_limit_result result
        cdef Spent spent
        cdef timespec ts
        cdef int64_t now
        if limit.requests == 0:
            clock_gettime(CLOCK_REALTIME, &ts)
            now = <int64_t>ts.tv_sec % limit.unit
            verdict.take(limit, True, 0, (limit.unit - now) * 1000, ts.tv_sec - now)
            return True
        if self.store is None:
            clock_gettime(CLOCK_REALTIME, &ts)
            now = <int64_t>ts.tv_sec * 1000 + ts.tv_nsec // 1000000
            if ef_limit_take(self.memory, <const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), 1, limit.requests, limit.unit,
                             limit.sliding, now, &result) < 0:
                self.engine.count(G_LIMIT_STORE_FULL)
                self.on_error(verdict, limit)
            else:
                verdict.take(limit, result.admitted == 0, result.remaining, result.reset_ms, result.window)
            return True
        spent = self.spent.get(key)
        if spent is not None and spent.limit == limit.requests:
            if self.engine.wheel.now < spent.until:
                ef_stat_add(&limit.row.cells[L_LOCAL_OVER], 1)
                verdict.take(limit, True, 0, spent.until - self.engine.wheel.now, spent.window)
                return True
            del self.spent[key]
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
            check.waiters = [ex, limit]
            check.n = 1
            self.turn[key] = check
            self.queue.append(check)
        else:
            check.n += 1
            check.waiters.append(ex)
            check.waiters.append(limit)
        if not self.flying and not self.scheduled:
            self.scheduled = True
            self.engine.loop.call_soon(self._on_turn)
        return 0

    def _on_turn(self):
        self.scheduled = False
        if not self.flying and self.queue:
            self.send()

    cdef int send(self) except -1:
        """One batch, of all that came since the last one left."""
        cdef Check check
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
        self.batch += 1
        self.flying = <int>len(checks)
        self.in_flight = checks
        for check in checks:
            check.batch = self.batch
        self.engine.wheel.refresh()
        self.sent = now_us()
        self.sent_ms = self.engine.wheel.now
        self.deadline = (<Check>checks[0]).due  # whoever came first has waited longest, maybe for the batch before
        if self.timer is None:
            self.timer = self.engine.loop.call_later(max(self.deadline - self.sent_ms, 1) / 1000.0, self._on_timer)
        self.engine.count(G_LIMIT_BATCHES)
        self.store.submit(checks)
        return 0

    def _on_timer(self):
        """One timer for all batches: it looks at the deadline of the one under way."""
        cdef int64_t now = self.engine.wheel.refresh()
        self.timer = None
        if not self.flying:
            return
        if now < self.deadline:
            self.timer = self.engine.loop.call_later((self.deadline - now) / 1000.0, self._on_timer)
            return
        if self.graced != self.batch:
            # A worker that was held up for that long finds this timer first and the answer in its socket afterwards: a timer
            # of a millisecond lets the loop look at its sockets once.
            self.graced = self.batch
            self.timer = self.engine.loop.call_later(0.001, self._on_timer)
            return
        self.engine.count(G_LIMIT_TIMEOUTS)
        self.store.abandon()
        self.give_up()

    cdef int give_up(self) except -1:
        """By policy: what is under way, and what waits behind it; that has waited for the store as well."""
        cdef list lost = self.in_flight + self.queue
        self.batch += 1
        self.flying = 0
        self.in_flight = []
        self.queue = []
        self.turn = {}
        return self.refuse_all(lost)

    def settle(self, list checks, list values):
        """The store's answer to checks of one batch: admitted, remaining, reset_ms, window for each."""
        cdef Check check
        cdef Py_ssize_t i
        cdef int64_t took = now_us() - self.sent
        cdef list landed = []
        self.engine.wheel.refresh()
        for i in range(len(checks)):
            check = checks[i]
            if check.batch != self.batch or check.done:  # late
                continue
            check.done = True
            self.flying -= 1
            check.admitted = values[4 * i]
            check.remaining = values[4 * i + 1]
            check.reset_ms = values[4 * i + 2]
            check.window = values[4 * i + 3]
            if check.remaining == 0 and check.reset_ms > 0:
                self.note_spent(check)
            landed.append(check)
        if landed and not self.flying:
            self.landed_all(took)
        for check in landed:
            self.answer(check, took)

    def fail(self, list checks, str reason):
        """The store cannot answer these checks of one batch."""
        cdef Check check
        cdef list lost = []
        for check in checks:
            if check.batch == self.batch and not check.done:
                self.flying -= 1
                lost.append(check)
        if not lost:  # late
            return
        self.engine.count(G_LIMIT_STORE_ERRORS)
        if not self.flying:
            self.landed_all(now_us() - self.sent)
        self.refuse_all(lost)

    cdef int landed_all(self, int64_t took) except -1:
        """The batch is over. The next one leaves first: the store works while the answers go out."""
        self.engine.count_n(G_LIMIT_STORE_US, took)
        self.in_flight = []
        return self.send() if self.queue else 0

    cdef int answer(self, Check check, int64_t took) except -1:
        """Those who came first pass."""
        cdef Exchange ex
        cdef Limit limit
        cdef uint32_t place = 0
        cdef bint over
        cdef Py_ssize_t i
        for i in range(0, PyList_GET_SIZE(check.waiters), 2):
            ex = <Exchange>PyList_GET_ITEM(check.waiters, i)
            limit = <Limit>PyList_GET_ITEM(check.waiters, i + 1)
            over = place >= check.admitted
            ef_stat_add(&limit.row.cells[L_STORE_US], took)
            if ex is None:
                limit.count(over)
            else:
                ex.verdict.take(
                    limit, over, check.remaining if over else check.remaining + (check.admitted - 1 - place), check.reset_ms,
                    check.window
                )
                self.one_less(ex)
            place += 1
        return 0

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
        cdef Exchange ex
        cdef Py_ssize_t i
        for check in checks:
            if check.done:
                continue
            check.done = True
            for i in range(0, PyList_GET_SIZE(check.waiters), 2):
                ex = <Exchange>PyList_GET_ITEM(check.waiters, i)
                if ex is None:
                    ef_stat_add(&(<Limit>PyList_GET_ITEM(check.waiters, i + 1)).row.cells[L_ERROR], 1)
                else:
                    self.on_error(ex.verdict, <Limit>PyList_GET_ITEM(check.waiters, i + 1))
                    self.one_less(ex)
        return 0

    cdef int on_error(self, Verdict verdict, Limit limit) except -1:
        ef_stat_add(&limit.row.cells[L_ERROR], 1)
        if self.fail_closed and not limit.shadow:
            verdict.failed = True
        else:
            verdict.passed_blind = True
        return 0

    cdef int note_spent(self, Check check) except -1:
        """Until its window ends nothing has to be asked. Counted from when the batch left, so that it ends early rather than late."""
        cdef Spent spent
        cdef int64_t now = self.engine.wheel.now
        if len(self.spent) >= LIMIT_SPENT:
            self.spent = {key: one for key, one in self.spent.items() if (<Spent>one).until > now}
            if len(self.spent) >= LIMIT_SPENT // 2:  # else the next look would come too soon
                self.spent.clear()
        spent = Spent.__new__(Spent)
        spent.limit = check.limit
        spent.until = self.sent_ms + check.reset_ms
        spent.window = check.window
        self.spent[check.key] = spent
        return 0

    def dump(self):
        return {
            "store": "memory" if self.store is None else self.store.state(),
            "fail_closed": self.fail_closed,
            "spent": len(self.spent),
        }
