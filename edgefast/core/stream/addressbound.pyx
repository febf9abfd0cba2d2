# Address bound: limits of one client address: open connections, and new ones a second. An IPv6 client is its /64.
#
# In: a listener, an address, the time. Out: whether one more may begin. Open ones are counted exactly, in memory bounded by maxConnections.
# New ones are counted in a table of fixed size. A flood of addresses evicts the address that has used least of its limit. That address gets
# its limit again. Must never refuse an address for what others do.

cdef bytes address_key(const uint8_t *host):
    """Which client an address belongs to."""
    return host[12:16] if inet_is_v4(host) else host[:INET_CLIENT]


cdef class AddressBounds:
    def __dealloc__(self):
        free(self.slots)

    cdef bint may_begin(self, StreamListener listener, const uint8_t *host, int64_t now) except -1:
        """Whether the address has not begun too many in the last second; it begins one now. `now` in us."""
        cdef RateSlot *slot
        cdef RateSlot *worst = NULL
        cdef bytes client
        cdef uint64_t tag
        cdef int64_t step, due
        cdef int i
        if listener.address_rate == 0:
            return True
        if self.slots == NULL:
            self.slots = <RateSlot *>calloc(RATE_SLOTS, sizeof(RateSlot))
            if self.slots == NULL:
                raise MemoryError
        client = address_key(host)
        tag = ef_hash64(SEED ^ listener.serial, <const uint8_t *>PyBytes_AS_STRING(client), PyBytes_GET_SIZE(client), 0) | 1
        slot = &self.slots[(tag >> 8) & (RATE_SLOTS - RATE_WAYS)]
        for i in range(RATE_WAYS):
            if slot[i].tag == tag:
                worst = &slot[i]
                break
            if worst == NULL or slot[i].due < worst.due:
                worst = &slot[i]
        if worst.tag != tag:
            worst.tag = tag
            worst.due = now
        step = 1000000 // listener.address_rate
        due = (worst.due if worst.due > now else now) + step
        if due - now > 1000000 + step // 2:  # a burst of as many as a second has
            return False
        worst.due = due
        return True

    cdef bint enter(self, StreamListener listener, bytes client) except -1:
        """One more is open, if it may be; `leave` follows then."""
        held = listener.held.get(client, 0)
        if listener.address_connections and held >= listener.address_connections:
            return False
        listener.held[client] = held + 1
        return True

    cdef int leave(self, StreamListener listener, bytes client) except -1:
        held = listener.held.get(client, 0)
        if held > 1:
            listener.held[client] = held - 1
        else:
            listener.held.pop(client, None)
        return 0
