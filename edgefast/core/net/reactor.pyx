# Reactor: one epoll descriptor of the engine, nested in the worker's loop, which reports when it is ready.
#
# In: descriptors to watch. Out: on_events() of their owners, and once per turn on_turn_end() of every object that called `mark`.
# Level-triggered: unread input is reported again. A turn may therefore end after a bounded number of events, or a bounded time. The next
# turn then first handles the rest of the last report. An object that called `again` gets its share of every turn, not of every round of all
# ready objects, which may be many turns. An object with more work than its share calls `later`: between two pieces of such work the reactor
# polls the kernel for all events. A descriptor's number may come back within one batch of events; the generation in epoll_data separates
# the openings. Each event handles its own exceptions: a fault costs the descriptor it happened on.
# Must never block, and never call back from within `watch`, `mark` or `unwatch`.

cdef class Watched(Timer):
    def __cinit__(self):
        self.fd = -1

    cdef void hold(self) noexcept:
        """Live until `release`, whoever else lets go."""
        if not self.held:
            self.held = True
            Py_INCREF(self)

    cdef void release(self) noexcept:
        if self.held:
            self.held = False
            Py_DECREF(self)

    cdef int on_events(self, uint32_t events) except -1:
        raise NotImplementedError

    cdef int on_deadline(self, int64_t now) except -1:
        try:
            return self.on_due(now)
        except BaseException:  # without a deadline and an event it would stay for ever
            self.reactor.fail(self, "loop: a deadline could not be processed")
        return 0

    cdef int on_due(self, int64_t now) except -1:
        """The deadline has passed."""
        raise NotImplementedError

    cdef int on_later(self) except -1:
        """What was put off to this turn."""
        return 0

    cdef int on_turn_end(self) except -1:
        """What was put off until everybody's events are handled. Nobody holds the engine's shared buffers now."""
        return 0

    cdef int detach(self, bint fault) except -1:
        """End what depends on this descriptor: a callback of it has raised, or the reactor closes."""
        raise NotImplementedError


cdef class Reactor:
    """The descriptors of one worker.

    loop: a uvloop loop. wheel: its clock is set at the start of each turn. buffer: of READ_BUFFER bytes.
    """

    def __cinit__(self, loop, Wheel wheel, ReadBuffer buffer):
        self.epoll = self.spare = -1
        # what is not told to anybody is counted here
        self.cells.turns = self.cells.busy_us = self.cells.longest_us = &self.unreported
        self.cells.events = self.cells.stale = self.cells.faults = &self.unreported
        self.moment = -1
        self.loop = loop
        self.wheel = wheel
        self.room = SLOTS
        self.slots = <Slot *>calloc(self.room, sizeof(Slot))
        self.buffer = buffer
        if self.slots == NULL:
            raise MemoryError
        self.epoll = epoll_create1(EPOLL_CLOEXEC)
        if self.epoll < 0:
            raise OSError(errno, "epoll_create1")
        self.restore_spare()
        self.insisting = []
        self.later_ones = []
        self.on_turn = self._turn
        self.on_flush = self._flush_later

    def __dealloc__(self):
        if self.epoll >= 0:
            close(self.epoll)
        if self.spare >= 0:
            close(self.spare)
        free(self.slots)

    def close(self):
        """Let go of all descriptors and of the loop; what was marked is handled first."""
        cdef size_t i
        cdef Watched item
        if self.epoll < 0:
            return
        self.closing = True
        self.flush()
        if self.attached:
            self.loop.remove_reader(self.epoll)
        for i in range(self.room):
            if self.slots[i].watched != NULL:
                item = <Watched>self.slots[i].watched
                self.fail(item, None)
        self.flush()
        self.insisting.clear()
        self.later_ones.clear()
        close(self.epoll)
        if self.spare >= 0:
            close(self.spare)
        self.epoll = self.spare = -1

    # --- descriptors -----------------------------------------------------------------------------------------------

    cdef int watch(self, Watched item, uint32_t events) except -1:
        """Begin to watch item.fd, and hold the item. OSError when the kernel will not (its limit of watches, memory)."""
        cdef epoll_event event
        cdef Slot *slot
        if not self.attached:
            self.loop.add_reader(self.epoll, self.on_turn)
            self.attached = True
        if <size_t>item.fd >= self.room:
            self.grow(item.fd)
        slot = &self.slots[item.fd]
        event.events = events
        event.data.u64 = <uint64_t>slot.generation << 32 | <uint32_t>item.fd
        if epoll_ctl(self.epoll, EPOLL_CTL_ADD, item.fd, &event) < 0:
            raise OSError(errno, "epoll_ctl")
        slot.watched = <void *>item
        item.hold()
        item.events = events
        item.watched = True
        self.watching += 1
        return 0

    cdef void unwatch(self, Watched item, bint closing) noexcept:
        """Watch item.fd no more, though the item is held; events of it that were already fetched are stale. closing: close(2) follows, which tells the kernel."""
        cdef Slot *slot
        cdef epoll_event event
        if not item.watched:
            return
        slot = &self.slots[item.fd]
        slot.generation += 1
        slot.watched = NULL
        item.watched = False
        self.watching -= 1
        if not closing:
            epoll_ctl(self.epoll, EPOLL_CTL_DEL, item.fd, &event)

    cdef int pass_on(self, Watched before, Watched after) except -1:
        """after.fd, which is before's, has another owner from now on. What is asked of the kernel stays."""
        cdef Slot *slot = &self.slots[before.fd]
        after.hold()
        slot.watched = <void *>after
        after.events = before.events
        after.watched = True
        before.watched = False
        before.fd = -1
        before.release()
        return 0

    cdef int change(self, Watched item, uint32_t events) except -1:
        """What to report of a descriptor from now on."""
        cdef epoll_event event
        if not item.watched:
            return self.watch(item, events)
        if item.events == events:
            return 0
        event.events = events
        event.data.u64 = <uint64_t>self.slots[item.fd].generation << 32 | <uint32_t>item.fd
        if epoll_ctl(self.epoll, EPOLL_CTL_MOD, item.fd, &event) < 0:
            raise OSError(errno, "epoll_ctl")
        item.events = events
        return 0

    cdef int grow(self, int fd) except -1:
        cdef size_t room = self.room
        cdef Slot *slots
        while room <= <size_t>fd:
            room *= 2
        slots = <Slot *>realloc(self.slots, room * sizeof(Slot))
        if slots == NULL:
            raise MemoryError
        memset(slots + self.room, 0, (room - self.room) * sizeof(Slot))
        self.slots = slots
        self.room = room
        return 0

    cdef bint restore_spare(self) noexcept:
        if self.spare < 0:
            self.spare = open("/dev/null", O_RDONLY | O_CLOEXEC)
        return self.spare >= 0

    # --- turns -----------------------------------------------------------------------------------------------------

    def _turn(self):
        cdef int64_t began = monotonic_ns()
        cdef int first, insisted
        cdef Py_ssize_t waiting = len(self.later_ones)
        self.wheel.now = began // 1000000
        if self.ready_at >= self.ready_end:
            self.ready_at = 0
            self.ready_end = epoll_wait(self.epoll, self.ready, TURN_EVENTS, 0)
        first = self.ready_at
        self.in_turn = True
        self.turn += 1
        insisted = self.serve_insisting(began) if self.insisting else 0
        while self.ready_at < self.ready_end:
            self.ready_at += 1
            self.dispatch(&self.ready[self.ready_at - 1])
            if (self.ready_at - first) % TURN_LOOK == 0 and monotonic_ns() - began > TURN_NS:
                break  # the kernel would report those that come first again, and the others never
        if waiting:
            self.serve_later(waiting)
        try:
            self.flush()
        finally:
            self.in_turn = False
        self.report_turn(began, monotonic_ns() - began, self.ready_at - first + insisted)

    cdef void report(self, ReactorCells *cells) noexcept:
        """Count in these cells from now on."""
        self.cells = cells[0]

    cdef void report_turn(self, int64_t began, int64_t took, int events) noexcept:
        cdef int64_t us
        ef_stat_add(self.cells.turns, 1)
        if events > 0:
            ef_stat_add(self.cells.events, events)
        self.owed_ns += took
        us = self.owed_ns // 1000
        self.owed_ns -= us * 1000
        ef_stat_add(self.cells.busy_us, us)
        if began - self.window_ns >= LONGEST_WINDOW_MS * <int64_t>1000000:
            # The window before this one is what comes just before it: after a silence there was none.
            self.longest_before = self.longest_now if began - self.window_ns < 2 * LONGEST_WINDOW_MS * <int64_t>1000000 else 0
            self.window_ns = began
            self.longest_now = 0
        elif took <= self.longest_now:
            return
        if took > self.longest_now:
            self.longest_now = took
        us = (self.longest_now if self.longest_now > self.longest_before else self.longest_before) // 1000
        ef_stat_add(self.cells.longest_us, <uint64_t>us - self.cells.longest_us[0])

    cdef void dispatch(self, epoll_event *event) noexcept:
        cdef Slot *slot = &self.slots[<uint32_t>event.data.u64]
        cdef Watched item
        if slot.watched == NULL or slot.generation != <uint32_t>(event.data.u64 >> 32):
            ef_stat_add(self.cells.stale, 1)
            return
        item = <Watched>slot.watched
        self.handle(item, event.events)

    cdef void handle(self, Watched item, uint32_t events) noexcept:
        """Its events; somebody holds it until it has handled them."""
        self.moment = 0
        try:
            item.on_events(events)
        except BaseException:  # whatever it is, it is this descriptor's
            self.fail(item, "loop: an event could not be processed")
        self.moment = -1

    cdef int again(self, Watched item) except -1:
        """on_events() of this item in the next turn, too, before those of others."""
        if not item.insists:
            item.insists = True
            self.insisting.append(item)
        return 0

    cdef int serve_insisting(self, int64_t began) except -1:
        """Those who have asked for this turn, in order; whom its time does not reach comes first in the next one. Returns how many there were."""
        cdef list items = self.insisting
        cdef Watched item
        cdef int served = 0
        self.insisting = []
        for item in items:
            if served and monotonic_ns() - began > TURN_NS:
                self.insisting[:0] = items[served:]
                break
            served += 1
            item.insists = False
            if item.watched:
                self.handle(item, item.events)
        return served

    cdef int later(self, Watched item) except -1:
        """on_later() of this item in a turn to come, behind everybody's events."""
        if not item.waits:
            item.waits = True
            self.later_ones.append(item)
            if not self.in_turn:
                self.call_flush()
        return 0

    cdef int serve_later(self, Py_ssize_t waiting) except -1:
        """Those who have waited for this turn, in order: one of them, and others as far as LATER_NS goes."""
        cdef int64_t began = monotonic_ns()
        cdef Watched item
        while waiting > 0:
            waiting -= 1
            item = self.later_ones.pop(0)
            item.waits = False
            if item.fd < 0:
                continue
            self.moment = 0
            try:
                item.on_later()
            except BaseException:
                self.fail(item, "loop: deferred work could not be processed")
            self.moment = -1
            if monotonic_ns() - began > LATER_NS:
                break
        return 0

    cdef int64_t now_us(self) noexcept:
        """Monotonic microseconds: the clock is read once for all that follows from one event."""
        cdef int64_t now
        if self.moment > 0:
            return self.moment
        now = monotonic_ns() // 1000
        if self.moment == 0:
            self.moment = now
        return now

    cdef void fail(self, Watched item, str what) noexcept:
        """The end of a guard: the fault is told and its descriptor let go. what: None for no fault."""
        if what is not None:
            ef_stat_add(self.cells.faults, 1)
            _log.exception(what)
        try:
            item.detach(what is not None)
        except BaseException:
            _log.exception("loop: the end of a file descriptor could not be processed")
            if item.fd >= 0:
                self.unwatch(item, True)
                close(item.fd)
                item.fd = -1
            item.release()

    cdef int mark(self, Watched item) except -1:
        """on_turn_end() of this item at the end of the turn; outside of one, when the loop goes round."""
        if item.marked:
            return 0
        item.marked = True
        item.next_marked = NULL
        Py_INCREF(item)
        if self.last_marked == NULL:
            self.first_marked = <void *>item
        else:
            (<Watched>self.last_marked).next_marked = <void *>item
        self.last_marked = <void *>item
        if not self.in_turn:
            self.call_flush()
        return 0

    cdef int call_flush(self) except -1:
        if not self.flush_due:
            self.flush_due = True
            self.loop.call_soon(self.on_flush)
        return 0

    def _flush_later(self):
        self.flush_due = False
        if self.later_ones:  # a whole turn: everybody else comes first
            self._turn()
            return
        self.wheel.refresh()
        self.in_turn = True
        try:
            self.flush()
        finally:
            self.in_turn = False

    cdef int flush(self) except -1:
        """on_turn_end() of everybody who is marked, and of those who are by that, as far as it goes on. What is left has a turn that comes soon."""
        cdef int rounds
        cdef void *node
        cdef Watched item
        for rounds in range(FLUSH_ROUNDS):
            node = self.first_marked
            if node == NULL:
                break
            self.first_marked = self.last_marked = NULL
            while node != NULL:
                item = <Watched>node
                node = item.next_marked
                item.next_marked = NULL
                item.marked = False
                try:
                    item.on_turn_end()
                except BaseException:
                    self.fail(item, "loop: the end of an iteration could not be processed")
                Py_DECREF(item)
        if self.first_marked != NULL or self.later_ones:
            self.call_flush()
        return 0
