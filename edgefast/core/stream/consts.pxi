# Tunables of connections and datagrams that are passed on, with unit and reason.

cdef enum:
    STREAM_BUFFER = 65536  # bytes that one side has not taken, above which the other one is not read
    STREAM_TRIES = 4  # endpoints that are asked for one connection
    STREAM_LOOK_MS = 50  # until it is looked again: whether a name has got addresses, whether a side that is left takes its bytes
    STREAM_LEFT_MS = 30000  # in which a side that has bytes to take has to take some, or is reset
    STREAM_DRAIN_MS = 1000  # between two looks at that while both sides are there
    STREAM_QUIET_MS = 1000  # a connection that is idle for this long is closed before others of the client with most
    STREAM_REST_MS = 30000  # ... for a client that holds a small part of the places
    RATE_SLOTS = 16384  # addresses whose new connections are counted: 16 bytes each, a power of two
    RATE_WAYS = 4  # places in which an address may be found
    STREAM_PROXY_MOST = 640  # bytes of a PROXY protocol header: two addresses, a name of 255 bytes, a protocol of 255

cdef enum:
    DATAGRAM_BURST = 128  # datagrams taken from one port in a turn
    DATAGRAM_ANSWERS = 16  # answers taken from one backend's socket in a turn
    DATAGRAM_GRACE_MS = 5000  # for answers that are awaited when nothing more can be sent
    DATAGRAM_KEY = 38  # bytes of a session's key: the client's address and port, our address, the link of a link-local client
    DATAGRAM_SILENCES = 5  # times sessionTimeout that a client may be silent while its backend speaks
    REFUSAL_LINES = 16  # a second and listener, of datagrams that policies refuse
    UNPROVEN_SHARE = 8  # one in so many of maxSessions is for those that are no conversations yet
    UNPROVEN_ANSWERS = 64  # to each datagram of a client that may be somebody else
    UNPROVEN_BYTES = 131072  # ... and bytes of them: two of the largest

# Places in cells.STREAM_REFUSED.
cdef enum:
    REFUSED_LIMIT = 0  # ... and those of an address behind it, as TcpProxyEnd has them
    REFUSED_PREAMBLE = 3
    REFUSED_ROUTE = 4
    REFUSED_BACKEND = 5
