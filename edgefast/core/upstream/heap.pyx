# Heap: counts that go up and down by one, and the owner of the highest: each step takes constant time.
#
# In: steps. Out: one of those with the highest count, of equals the one that has been there longest. A count of zero is not held.

cdef class Heap:
    def __cinit__(self):
        self.buckets = {}

    cdef HeapEntry first(self):
        """None: nobody has any."""
        return next(iter(self.buckets[self.top])) if self.top else None

    cdef int up(self, HeapEntry one) except -1:
        self.move(one, one.count + 1)
        if one.count > self.top:
            self.top = one.count
        return 0

    cdef int down(self, HeapEntry one) except -1:
        cdef uint32_t count = one.count
        self.move(one, count - 1)
        if count == self.top and count not in self.buckets:
            self.top = one.count  # it has just come there, and nobody else was above
        return 0

    cdef int move(self, HeapEntry one, uint32_t count) except -1:
        bucket = self.buckets.get(one.count)
        if bucket is not None:
            del bucket[one]
            if not bucket:
                del self.buckets[one.count]
        one.count = count
        if count:
            bucket = self.buckets.get(count)
            if bucket is None:
                bucket = self.buckets[count] = OrderedDict()
            bucket[one] = None
        return 0
