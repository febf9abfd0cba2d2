# Wheel: the timer wheel: one coarse tick for all timeouts of a worker.
#
# In: objects with a deadline. Out: on_deadline() once it has passed. A later deadline is only stored; its old slot links it again when the
# wheel reaches it. The wheel holds borrowed pointers: the owner of a timer disarms it before it releases the object. It never blocks and
# stops ticking while nothing is armed.

cdef class Timer:
    def __cinit__(self):
        self._slot = -1

    cdef int on_deadline(self, int64_t now) except -1:
        raise NotImplementedError


cdef class Wheel:
    def __cinit__(self, loop):
        self._loop = loop
        self.refresh()
        self._tick = self.now // TICK_MS

    cdef int64_t refresh(self) noexcept:
        cdef timespec ts
        clock_gettime(CLOCK_MONOTONIC, &ts)
        self.now = <int64_t>ts.tv_sec * 1000 + ts.tv_nsec // 1000000
        return self.now

    cdef int arm(self, Timer timer, int64_t deadline) except -1:
        timer.deadline = deadline
        if timer._slot >= 0:
            if deadline >= timer._linked_at:
                return 0
            self._unlink(timer)
        self._link(timer, deadline)
        if not self._running:
            self._running = True
            self._tick = self.now // TICK_MS
            self._handle = self._loop.call_later(TICK_MS / 1000.0, self._on_tick)
        return 0

    cdef void disarm(self, Timer timer) noexcept:
        timer.deadline = 0
        if timer._slot >= 0:
            self._unlink(timer)

    cdef void _link(self, Timer timer, int64_t deadline) noexcept:
        cdef int64_t tick = deadline // TICK_MS + 1
        if tick <= self._tick:
            tick = self._tick + 1
        timer._slot = <int32_t>(tick & (WHEEL_SLOTS - 1))
        timer._linked_at = deadline
        timer._previous = NULL
        timer._next = self._slots[timer._slot]
        if timer._next != NULL:
            (<Timer>timer._next)._previous = <void *>timer
        self._slots[timer._slot] = <void *>timer
        self.armed += 1

    cdef void _unlink(self, Timer timer) noexcept:
        if timer._previous != NULL:
            (<Timer>timer._previous)._next = timer._next
        else:
            self._slots[timer._slot] = timer._next
        if timer._next != NULL:
            (<Timer>timer._next)._previous = timer._previous
        timer._previous = timer._next = NULL
        timer._slot = -1
        self.armed -= 1

    def _on_tick(self):
        cdef int64_t now = self.refresh()
        cdef int64_t last = now // TICK_MS
        cdef int32_t slot
        cdef void *node
        cdef Timer timer
        if last - self._tick > WHEEL_SLOTS:  # the process was stopped for a while: one whole turn sees every slot
            self._tick = last - WHEEL_SLOTS
        while self._tick < last:
            self._tick += 1
            slot = <int32_t>(self._tick & (WHEEL_SLOTS - 1))
            if self._slots[slot] == NULL:
                continue
            due = []  # strong references: a callback may end any of these objects
            node = self._slots[slot]
            while node != NULL:
                due.append(<Timer>node)
                node = (<Timer>node)._next
            for timer in due:
                if timer._slot != slot:
                    continue
                if timer.deadline <= now:
                    self._unlink(timer)
                    try:
                        timer.on_deadline(now)
                    except BaseException:  # one fault must not stop the clock of all others
                        _log.exception("loop: a deadline could not be processed")
                elif timer.deadline // TICK_MS + 1 < self._tick + WHEEL_SLOTS:
                    self._unlink(timer)
                    self._link(timer, timer.deadline)
        if self.armed:
            self._handle = self._loop.call_later(TICK_MS / 1000.0, self._on_tick)
        else:
            self._running = False
            self._handle = None

    def stop(self):
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
