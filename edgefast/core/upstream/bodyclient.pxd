# What one client has of a BodyShare.

cdef class BodyClient(Line):
    cdef:
        BodyShare share
        bytes address       # UpstreamUser.origin(); None: of all that have none
        uint32_t places     # that it holds

    cdef UpstreamUser first_that_stopped(self, int *looks)
