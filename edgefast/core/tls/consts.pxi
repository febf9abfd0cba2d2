# Tunables of TLS, with unit and reason.

cdef enum:
    HANDSHAKE_MS = 10000  # for a handshake, as for a request head (docs/reference/http1.md), if that has not less
    HANDSHAKE_GRACE_MS = 1000  # in which a client may say hello whoever else wants its place: a long round trip
    HANDSHAKES_MOST = 20000  # connections of a worker that have not said hello: 2 KiB each
    SHAKING_MOST = 2048  # ... that have, and are in the library: 50 KiB each
    SHAKING_SHARE = 2  # ... and no more than one in so many of maxConnections, so that there are places for others,
    SHAKING_LEAST = 64  # where these are more than so many
    EARLY_MOST = 32 * 1024 * 1024  # bytes of a worker's unfinished hellos: a thousand of the longest, or 20000 of common ones
    EARLY_LONG = 4096  # bytes of one that goes before shorter ones: with a post-quantum key share it has less than 2000
    TURN_HANDSHAKES = 8  # steps of handshakes in a turn, a third of a millisecond each: who is connected waits behind no more
    TURN_HANDSHAKES_NS = 3000000  # ... and no further one after so long: of an RSA key of 4096 bits one takes two milliseconds
    TOLD_MS = 10000  # between two lines about certificates that cannot be loaded
    BACKEND_SESSIONS = 1024  # sessions of backends that a worker keeps: 5 KiB each, with a backend's certificates
    BACKEND_SESSION_MS = 3600000  # until a backend shows its certificate again

# Alerts of our own (RFC 8446 6).
cdef enum:
    ALERT_INTERNAL_ERROR = 80
    ALERT_UNRECOGNIZED_NAME = 112
