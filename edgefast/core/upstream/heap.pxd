# Heap: which of many has the highest count.

cdef class HeapEntry:
    cdef uint32_t count     # goes up and down by one (Heap.up, Heap.down)


cdef class Heap:
    cdef:
        dict buckets         # count -> OrderedDict HeapEntry -> None: those that have so many; none is empty
        uint32_t top        # the highest of them; 0: there is nobody

    cdef HeapEntry first(self)
    cdef int up(self, HeapEntry one) except -1
    cdef int down(self, HeapEntry one) except -1
    cdef int move(self, HeapEntry one, uint32_t count) except -1
