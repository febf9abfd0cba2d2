# End: how a connection ended, or why it did not open.

cdef enum End:
    END_NONE = 0
    END_CLOSED          # by us, after everything was sent
    END_ABORTED         # by us, at once
    END_RESET           # by the peer
    END_TIMED_OUT       # the peer does not answer: the kernel says so, or the deadline of a connect or a handshake
    END_REFUSED         # nobody listens there
    END_UNREACHABLE     # no way there
    END_SHORTAGE        # no descriptor, port or memory for it here
    END_STALLED         # bytes are left and the peer has taken none for too long
    END_OVERFLOW        # a bound of ours was passed
    END_WIRE            # what came is not the wire's protocol
    END_FAULT           # a mistake of the program
    END_OTHER           # Connection.error
