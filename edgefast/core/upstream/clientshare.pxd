# What the clients of one bounded thing hold of it.

cdef class ClientPart(Ranked):  # by how many members it has
    """What one client holds."""
    cdef:
        object client
        object members          # OrderedDict member -> None; those looked at last come last


cdef class ClientShare:
    cdef:
        dict parts              # client -> ClientPart; None: members whose client nothing tells from others
        dict owners             # member -> ClientPart
        Ranks ranks             # of all parts but that one
        readonly uint32_t count # members

    cdef int enter(self, object client, object member) except -1
    cdef bint leave(self, object member) except -1
    cdef uint32_t held(self, object client) except? 0xFFFFFFFF
    cdef object first(self, uint32_t least, int64_t by)
    cdef object first_unknown(self, int64_t by)
    cdef object quietest(self, ClientPart part, int64_t by)
    cdef bint has_room(self, object client, uint32_t most, int64_t now) except -1
    cdef int64_t quiet_since(self, object member) except -2
    cdef int make_way(self, object member) except -1
