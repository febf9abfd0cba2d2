# Shares of clients in one bounded resource.

cdef class ClientPart(Ranked):  # by how many members it has
    """What one client holds."""
    cdef:
        object client
        object members          # OrderedDict member -> None; those looked at last come last


cdef class ClientShare:
    cdef:
        dict parts              # client -> ClientPart; None: members of unidentified clients
        dict owners             # member -> ClientPart
        Ranks ranks             # of all parts but that one
        readonly uint32_t count # members
        uint32_t floor          # where `first` continues next time: at clients with this many members ...
        size_t left             # ... the last `left` of them; 0: all

    cdef int enter(self, object client, object member) except -1
    cdef bint leave(self, object member) except -1
    cdef uint32_t held(self, object client) except? 0xFFFFFFFF
    cdef object first(self, uint32_t least, int64_t by)
    cdef object first_of_others(self, list floors, uint32_t floor, size_t left, int64_t by)
    cdef object search(self, uint32_t count, size_t looks, int64_t by)
    cdef object first_unknown(self, int64_t by)
    cdef object quietest(self, ClientPart part, int64_t by)
    cdef object room_for(self, object client, uint32_t most, int64_t now)
    cdef int64_t quiet_since(self, object member) except -2
    cdef int make_way(self, object member) except -1
