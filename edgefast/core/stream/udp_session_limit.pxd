# UDP session limit: the sessions of one UDP listener in the order of their eviction.

cdef class UdpSessionLimit:
    cdef:
        object order            # OrderedDict DatagramSession -> None, by age: sessions that are not conversations
        ClientShare fresh       # the same by client (address_key)
        ClientShare proven      # conversations; of each client the longest idle first

    cdef DatagramSession first(self, bytes client, uint32_t places)
    cdef int enter(self, DatagramSession session) except -1
    cdef int prove(self, DatagramSession session) except -1
    cdef int speak(self, DatagramSession session) except -1
    cdef int give_up(self, DatagramSession session) except -1
    cdef int leave(self, DatagramSession session) except -1
