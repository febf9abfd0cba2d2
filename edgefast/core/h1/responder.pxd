# Responder: writes answers to a client's connection: the proxy's own, and the backend's as it comes.

cdef bytes status_line(int status)
