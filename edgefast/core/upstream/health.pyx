# Health: the health and usage of clusters and endpoints, in memory that all workers share (csrc/health.h).
#
# In: names of clusters and endpoints, the same in all workers. Out: their records, held as long as this worker uses them. A name has one
# record here for all its users. Without space for one, or without a segment, the record is this worker's own. Each worker then applies the
# bounds for itself, which is logged once. A cluster's records are looked up at its creation, which its first request may cause, and at a
# change of its endpoints: never per request.

cdef class Health:
    def __init__(self, segment, uint32_t worker):
        """segment: writable view of the whole mapping, or None; worker: its seat there."""
        cdef Py_buffer view
        self.records = WeakValueDictionary()
        self.seat, self.seats = worker, 1
        if segment is None:
            return
        self.view = memoryview(segment)
        PyObject_GetBuffer(self.view, &view, PyBUF_WRITABLE)
        self.segment = <ef_health *>view.buf
        size = view.len
        PyBuffer_Release(&view)
        if ef_health_check(self.segment, size) < 0:
            raise ValueError("health is not a segment of records")
        self.seats = ef_health_seats(self.segment)
        if worker >= self.seats:
            raise ValueError(f"the health memory has {self.seats} seats, which do not include worker {worker}")
        if ef_health_forget(self.segment, worker) < 0:  # of a predecessor, if the agent could not
            raise ValueError("the lock of the segment cannot be acquired")
        Py_INCREF(self.view)  # mapped as long as the process lives: a record may outlive its engine

    cdef ef_health_record *find(self, uint64_t key) noexcept:
        """In the segment; NULL: there is no room, or whoever has the lock was stopped with it."""
        cdef int64_t now = time.monotonic_ns() // 1000000
        cdef ef_health_record *found
        if self.segment == NULL or now < self.pause_until:
            return NULL
        found = ef_health_hold(self.segment, key, self.seat)
        if found == NULL:
            self.pause_until = time.monotonic_ns() // 1000000 + HEALTH_PAUSE_MS
            if not self.reported:
                self.reported = True
                _log.warning("health: shared memory is full; workers count some clusters and endpoints separately")
        return found

    cdef bint claim(self) noexcept:
        """This worker asks endpoints how they are, or would if it wanted to."""
        return self.segment == NULL or ef_health_claim(self.segment, self.seat) != 0

    cdef int resign(self) noexcept:
        if self.segment != NULL:
            ef_health_resign(self.segment, self.seat)
        return 0

    cdef HealthRecord hold(self, bytes name):
        cdef HealthRecord record
        cdef uint64_t key = hash_same(name) or 1
        record = self.records.get(key)
        if record is None:
            record = HealthRecord(self, key)
            self.records[key] = record
        return record


cdef class HealthRecord:
    def __cinit__(self, Health owner, uint64_t key):
        self.seat, self.seats = owner.seat, owner.seats
        self.at = owner.find(key)
        if self.at != NULL:
            self.segment = owner.segment
        else:
            self.seat, self.seats = 0, 1
            self.at = <ef_health_record *>calloc(1, sizeof(ef_health_record) + sizeof(ef_share))
            if self.at == NULL:
                raise MemoryError
        self.own = self.at.shares[self.seat].count

    def __dealloc__(self):
        if self.segment != NULL:
            ef_health_release(self.segment, self.at, self.seat)
        else:
            free(self.at)

    cdef uint64_t others(self, uint32_t what) noexcept:
        """What the other workers have of it."""
        return ef_share_sum(self.at, self.seats, what) - self.own[what]

    cdef bint take(self, uint32_t what, uint32_t most) noexcept:
        """One more, if all workers together have no more than so many then."""
        return ef_share_take(self.at, self.seats, self.seat, what, most)
