# What one client has of a BodyShare.

cdef class BodyClient(Ranked):  # by places that it holds
    cdef:
        bytes address       # UpstreamUser.origin(); None: of all that have none
        Behind behind       # its users that hold them
