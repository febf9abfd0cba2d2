# Wheel: deadlines. Any object with one inherits Timer; `arm` is a few stores when the deadline only moves later.

cdef class Timer:
    cdef:
        void *_previous     # borrowed neighbours in the slot's list; NULL at its ends
        void *_next
        int32_t _slot       # -1: in no slot
        int64_t _linked_at  # ms; the slot was chosen for this deadline
        int64_t deadline    # ms of Engine.now; 0: none

    cdef int on_deadline(self, int64_t now) except -1


cdef class Wheel:
    cdef:
        void *_slots[1024]
        int64_t _tick       # number of the last tick that was processed
        int64_t now         # ms, monotonic
        size_t armed
        object _loop
        object _handle
        bint _running

    cdef int64_t refresh(self) noexcept
    cdef int arm(self, Timer timer, int64_t deadline) except -1
    cdef void disarm(self, Timer timer) noexcept
    cdef void _link(self, Timer timer, int64_t deadline) noexcept
    cdef void _unlink(self, Timer timer) noexcept
