# Dispatcher: checks on their way to a store.

cdef class Dispatcher:
    cdef:
        Engine engine
        object store            # RedisStore; None: the memory store
        int64_t timeout         # ms
        dict turn               # key -> Check of this turn
        list queue              # the same, in order
        list in_flight          # what is under way, in order; some at the front may have their answer
        Py_ssize_t oldest       # before this place all have it
        bint scheduled
        int flying              # requests whose answers are under way
        object timer            # of the oldest check under way
        object pacer            # of the first in the queue: no answers come meanwhile
        double pace             # seconds that it may wait

    cdef int enqueue(self, Exchange ex, Limit limit, bytes key) except -1
    cdef int send(self) except -1
    cdef Check find_oldest(self)
    cdef int expire(self, int64_t now) except -1
    cdef int give_up(self) except -1
    cdef int land(self, Check check, int64_t now) except -1
    cdef int go_on(self) except -1
    cdef int refuse_all(self, list checks) except -1
