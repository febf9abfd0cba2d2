# Client share: shares of clients in one bounded resource.

cdef class ClientEntry:
    """What one client holds."""
    cdef:
        object client       # the client's key; None: unidentified clients
        object members      # OrderedDict member -> units that it holds; members looked at last come last
        uint32_t count      # units of all members

    cdef object first(self)
    cdef object last(self)


cdef class ClientShare:
    cdef:
        object entries      # OrderedDict client -> ClientEntry, in the order of their turns
        dict owners         # member -> ClientEntry
        dict ranks          # units -> OrderedDict ClientEntry -> None; none is empty
        uint32_t top        # the most units that a client holds; 0: none holds any
        readonly uint32_t count # units of all members
        bint ranks_unknown  # unidentified clients count as one client
        uint32_t turn       # where `first` begins among clients beside those with most

    cdef ClientEntry make_entry(self)
    cdef int enter(self, object client, object member) except -1
    cdef int grow(self, object client, object member, uint32_t units) except -1
    cdef uint32_t leave(self, object member) except? 0xFFFFFFFF
    cdef int rank(self, ClientEntry entry, uint32_t count) except -1
    cdef object members_in_turn(self, int most)
    cdef int pass_turn(self, ClientEntry entry) except -1
    cdef uint32_t held(self, object client) except? 0xFFFFFFFF
    cdef ClientEntry most(self)
    cdef ClientEntry client_to_evict(self, object client, uint32_t units)
    cdef object first(self, uint32_t least, int64_t by)
    cdef object search(self, list counts, int64_t by)
    cdef object first_unknown(self, int64_t by)
    cdef object longest_idle(self, ClientEntry entry, int64_t by)
    cdef object room_for(self, object client, uint32_t most, int64_t now)
    cdef int64_t inactive_since(self, object member) except -2
    cdef int preempt(self, object member) except -1
