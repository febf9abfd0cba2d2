# Failures: the cut for both sides and the text for the client of a failed request.
#
# In: flags and status of an exchange. Out: a Cut, a line of text. Neither contains anything of the request.

cdef inline Cut cut_of(uint32_t flag) noexcept:
    """What both sides of a request are told that failed for this reason."""
    if flag & (F_TIMEOUT | F_IDLE):
        return CUT_TIMEOUT
    if flag & F_INVALID:
        return CUT_PROTOCOL
    if flag & F_SLOW_READER:
        return CUT_CALM
    return CUT_CANCEL if flag & F_TOO_LARGE else CUT_INTERNAL


cdef bytes failure_text(int status, uint32_t flag, int why):
    """why: of a request that is refused for others, the UpFailure; 0: it is not a backend's."""
    if flag & F_NO_ENDPOINT:
        return b"no healthy endpoint\n"
    if flag & F_OVERFLOW and why == UP_REQUESTS:
        return b"too many requests are on their way to this backend\n"
    if flag & F_OVERFLOW and why == UP_SHUT:
        return b"this backend may have no connections\n"
    if flag & F_OVERFLOW and why == UP_STARVED:
        return b"too many requests to this backend were repeated lately\n"
    if flag & F_OVERFLOW and why == UP_STREAMS:
        return b"too many long-lived streams are open\n"
    if flag & F_OVERFLOW:
        return b"too many connections and requests wait for this backend\n"
    if flag & F_CONNECT:
        return b"the backend could not be reached\n"
    if flag & F_RESET:
        return b"the backend closed the connection before it answered\n"
    if flag & F_PROTOCOL:
        return b"the backend's answer was not valid HTTP\n"
    if flag & F_IDLE:
        return b"nothing was sent or received for too long\n"
    if status == 504:
        return b"the backend did not answer in time\n"
    if status == 408:
        return b"the request body came too slowly\n"
    return b"the request was not valid\n"
