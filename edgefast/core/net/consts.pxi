# Tunables of the socket layer, with unit and reason.

cdef enum:
    TURN_EVENTS = 256  # events handled before the worker's loop looks at everybody else; the next turn takes the rest
    TURN_NS = 5000000  # ... or so much time, looked at after TURN_LOOK events: 200 us each, where large answers meet slow clients
    TURN_LOOK = 16
    LATER_NS = 100000  # of a turn, for those who have more to do than their share: everybody else's latency; one of them has its share at least
    LONGEST_WINDOW_MS = 15000  # the longest turn that is told is one of this window or of the one before it
    FLUSH_ROUNDS = 8  # times that what was marked while the marked were handled is handled in the same turn
    ACCEPT_BURST = 32  # connections taken from one queue in a turn
    ACCEPT_PAUSE_MS = 100  # without accepting, when not even turning away is possible
    DIAL_RETRY_MS = 20  # until a unix socket whose queue is full is tried again: the kernel tells nobody when it has room
    SEND_AHEAD = 262144  # bytes that the kernel keeps for a client beyond what is on its way: it would take megabytes for one that reads nothing
    OUT_BLOCK = 4096  # bytes of the smallest out-queue
    OUT_MOST = 4194304  # bytes that a writer may add after it was told to wait; then its connection is cut
    PENDING_BLOCK = 1024  # bytes of the smallest store of input
    PENDING_MOST = 1048576  # bytes of input that a session may leave for later; four times the largest head
    SLOTS = 256  # descriptors there is room for at first
