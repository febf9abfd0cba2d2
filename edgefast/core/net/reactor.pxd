# Reactor: the descriptors of a worker and their events.

cdef class Watched(Timer):
    """A descriptor that the reactor watches for somebody."""
    cdef:
        Reactor reactor
        int fd                  # -1: none (any more)
        uint32_t events         # what the kernel was asked to report; hang-ups it always does
        bint watched            # the kernel knows this descriptor
        bint held               # lives by a reference of its own: the wheel and the reactor only borrow
        bint marked             # on_turn_end follows
        bint insists            # on_events follows in the next turn, whatever the kernel reports
        bint waits              # on_later follows in a turn to come
        void *next_marked       # owned by the reactor's list

    cdef void hold(self) noexcept
    cdef void release(self) noexcept
    cdef int on_events(self, uint32_t events) except -1
    cdef int on_due(self, int64_t now) except -1
    cdef int on_later(self) except -1
    cdef int on_turn_end(self) except -1
    cdef int detach(self, bint fault) except -1


cdef struct Slot:
    void *watched               # borrowed, NULL: nobody
    uint32_t generation         # of the descriptor's number: which opening of it this is


# Where a reactor counts.
cdef struct ReactorCells:
    uint64_t *turns
    uint64_t *events            # handled or stale
    uint64_t *stale             # of a descriptor that was closed in the same turn
    uint64_t *faults            # callbacks that raised; each has cost a descriptor
    uint64_t *busy_us           # time in turns
    uint64_t *longest_us        # the longest turn of the last windows


cdef class Reactor:
    cdef:
        readonly object loop
        Wheel wheel
        int epoll
        int spare               # kept back, so that somebody can be turned away when there are no descriptors; -1: lost
        Slot *slots             # by descriptor
        size_t room
        epoll_event ready[256]  # TURN_EVENTS
        int ready_at, ready_end  # of these, what a turn that ran out of time has left to the next one
        uint64_t turn           # number of this one
        list insisting          # Watched, of the next one
        list later_ones         # Watched that have put something off, in order
        void *first_marked
        void *last_marked
        object on_turn          # bound methods, made once
        object on_flush
        bint in_turn
        int64_t moment          # us; when this event began to be handled. 0: nobody has asked yet; -1: no event is
        bint closing
        object own_ports        # frozenset of ports (of UDP: + OWN_UDP) on which this proxy itself listens; None: backends may use them
        bint flush_due          # on_flush is queued in the loop
        ReadBuffer buffer       # every read goes here; valid during one callback
        bint attached           # to the loop
        readonly size_t watching
        ReactorCells cells
        uint64_t unreported
        int64_t owed_ns             # busy time that is less than a unit of its cell
        int64_t window_ns           # when the window of `longest_now` began
        int64_t longest_now, longest_before     # ns, of this window and of the one before it

    cdef void report(self, ReactorCells *cells) noexcept
    cdef void report_turn(self, int64_t began, int64_t took, int events) noexcept
    cdef int watch(self, Watched item, uint32_t events) except -1
    cdef void unwatch(self, Watched item, bint closing) noexcept
    cdef int pass_on(self, Watched before, Watched after) except -1
    cdef int change(self, Watched item, uint32_t events) except -1
    cdef int grow(self, int fd) except -1
    cdef int mark(self, Watched item) except -1
    cdef int again(self, Watched item) except -1
    cdef int serve_insisting(self, int64_t began) except -1
    cdef int later(self, Watched item) except -1
    cdef int serve_later(self, Py_ssize_t waiting) except -1
    cdef int call_flush(self) except -1
    cdef void handle(self, Watched item, uint32_t events) noexcept
    cdef void dispatch(self, epoll_event *event) noexcept
    cdef int flush(self) except -1
    cdef int64_t now_us(self) noexcept
    cdef void fail(self, Watched item, str what) noexcept
    cdef bint restore_spare(self) noexcept


cdef inline int64_t monotonic_ns() noexcept:
    cdef timespec ts
    clock_gettime(CLOCK_MONOTONIC, &ts)
    return <int64_t>ts.tv_sec * 1000000000 + ts.tv_nsec
