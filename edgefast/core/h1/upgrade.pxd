# Upgrade: which 101 responses begin a tunnel (RFC 9110 7.8).

cdef list protocols_of(bytes value)
