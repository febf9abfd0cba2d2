# Exhausted: the worker's cache of counters without remaining requests, so that a refusal needs no call to the store.
#
# In: answers of the store that leave nothing of a counter. Out: the counter's state until its window ends, or none: then the store decides.
# The cache is bounded. When it is full, an ended entry is evicted, else the oldest entry of the limit with most entries. A flood of values
# on one limit therefore evicts only entries of that limit. An eviction looks at few entries, however many limits exist.
# Must never: report a counter as exhausted after its window, or for another number of requests than it was exhausted at.

cdef class ExhaustedLimit:
    pass


cdef class ExhaustedLimits:
    def __cinit__(self, Py_ssize_t most=LIMIT_EXHAUSTED):
        self.most = most
        self.clear()

    def clear(self):
        self.rooms = OrderedDict()
        self.count = 0
        self.largest = None

    cpdef ExhaustedLimit find(self, bytes counter, bytes key, uint32_t limit, int64_t now):
        """The state of a counter of the limit that is named `counter`; None: ask."""
        cdef ExhaustedLimit spent
        cdef object room = (<dict>self.rooms).get(counter)
        if room is None:
            return None
        spent = (<dict>room).get(key)
        if spent is None or spent.limit != limit:
            return None
        if now < spent.until:
            return spent
        self.drop(counter, room, key)
        return None

    cpdef int note(self, bytes counter, bytes key, uint32_t limit, int64_t until, uint64_t window, int64_t now) except -1:
        """It is spent at `limit` requests, until then."""
        cdef ExhaustedLimit spent
        cdef object room = (<dict>self.rooms).get(counter)
        if room is not None and key in <dict>room:
            self.drop(counter, room, key)
        elif self.count >= self.most:
            self.make_room(now)
        room = (<dict>self.rooms).get(counter)
        if room is None:
            room = self.rooms[counter] = OrderedDict()
        spent = ExhaustedLimit.__new__(ExhaustedLimit)
        spent.limit = limit
        spent.until = until
        spent.window = window
        room[key] = spent
        self.count += 1
        if self.largest is None or len(room) > len(self.rooms[self.largest]):
            self.largest = counter
        return 0

    cdef int make_room(self, int64_t now) except -1:
        """One goes. A few limits are looked at, in turns: one of them may have some that ended, or be the largest by now."""
        cdef bytes counter
        cdef bytes key
        cdef object room
        cdef ExhaustedLimit first
        cdef int i
        for i in range(LIMIT_LOOKS):
            counter = next(iter(self.rooms))
            self.rooms.move_to_end(counter)
            room = self.rooms[counter]
            key = next(iter(room))
            first = room[key]
            if first.until <= now:
                return self.drop(counter, room, key)
            if self.largest is None or len(room) > len(self.rooms[self.largest]):
                self.largest = counter
        room = self.rooms[self.largest]
        return self.drop(self.largest, room, next(iter(room)))

    cdef int drop(self, bytes counter, object room, bytes key) except -1:
        del room[key]
        self.count -= 1
        if not room:
            del self.rooms[counter]
            if self.largest == counter:
                self.largest = None
        return 0
