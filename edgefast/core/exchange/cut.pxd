# Cut: why a stream ends early, without protocol terms; a codec translates it, or closes.
cdef enum Cut:
    CUT_CANCEL = 1      # nobody waits for it any more
    CUT_REFUSED = 2     # nothing was done for it: it may be asked anew
    CUT_INTERNAL = 3    # it cannot be completed, and that is not the peer's fault
    CUT_PROTOCOL = 4    # the peer did not keep to the protocol
    CUT_CALM = 5        # the peer asks for too much
    CUT_TIMEOUT = 6     # it took too long
