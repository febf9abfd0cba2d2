# Checkout: an available connection for a user: of an endpoint, or of any.

cdef Outbound checkout(Pool pool, UpstreamUser user, Endpoint endpoint)
