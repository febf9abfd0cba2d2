# Sessions of one UDP listener by who gives way first.

cdef class DatagramSeats(Ranked):   # by how many conversations it has
    """What one client address has of a listener."""
    cdef:
        object fresh            # OrderedDict DatagramSession -> None, by age
        object proven           # ... those that are conversations, by when the client spoke last


cdef class DatagramRoom:
    cdef:
        object fresh            # OrderedDict DatagramSession -> None, by age: of all addresses
        dict addresses          # client (address_key) -> DatagramSeats
        Ranks ranks

    cdef DatagramSession first(self, bytes client, uint32_t places)
    cdef int enter(self, DatagramSession session) except -1
    cdef int prove(self, DatagramSession session) except -1
    cdef int speak(self, DatagramSession session) except -1
    cdef int give_up(self, DatagramSession session) except -1
    cdef int leave(self, DatagramSession session) except -1
