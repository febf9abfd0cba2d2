# End: the reason of a connection's end for an errno of a socket.

cdef End end_of(int error) noexcept:
    if error == ECONNRESET or error == EPIPE or error == ECONNABORTED:
        return END_RESET
    if error == ETIMEDOUT:
        return END_TIMED_OUT
    if error == ECONNREFUSED or error == ENOENT:  # of a unix socket: its file
        return END_REFUSED
    if error == EHOSTUNREACH or error == ENETUNREACH:
        return END_UNREACHABLE
    if (
        error == EMFILE or error == ENFILE or error == ENOMEM or error == ENOBUFS or error == EADDRNOTAVAIL
        or error == EADDRINUSE or error == ENOSPC  # of epoll_ctl: the user's watches
    ):
        return END_SHORTAGE
    return END_OTHER
