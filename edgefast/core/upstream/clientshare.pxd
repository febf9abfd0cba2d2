# Client share: shares of clients in one bounded resource.

cdef class ClientEntry(HeapEntry):  # by how many members it has
    """What one client holds."""
    cdef:
        object client
        object members          # OrderedDict member -> None; those looked at last come last


cdef class ClientShare:
    cdef:
        dict parts              # client -> ClientEntry; None: members of unidentified clients
        dict owners             # member -> ClientEntry
        Heap ranks             # of all parts but that one
        readonly uint32_t count # members
        uint32_t bucket          # where `first` continues next time: at clients with this many members ...
        size_t left             # ... the last `left` of them; 0: all

    cdef int enter(self, object client, object member) except -1
    cdef bint leave(self, object member) except -1
    cdef uint32_t held(self, object client) except? 0xFFFFFFFF
    cdef object first(self, uint32_t least, int64_t by)
    cdef object first_of_others(self, list buckets, uint32_t bucket, size_t left, int64_t by)
    cdef object search(self, uint32_t count, size_t looks, int64_t by)
    cdef object first_unknown(self, int64_t by)
    cdef object longest_idle(self, ClientEntry part, int64_t by)
    cdef object room_for(self, object client, uint32_t most, int64_t now)
    cdef int64_t inactive_since(self, object member) except -2
    cdef int preempt(self, object member) except -1
