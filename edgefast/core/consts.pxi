# Every tunable of the engine that is not a user's setting, with its unit and reason.

cdef enum:
    READ_BUFFER = 524288  # bytes; one per worker, shared by all connections (data is consumed before the next read)
    READ_SMALL = 65536  # bytes of it that a connection gets, until it fills them (a long body read in larger pieces costs half)
    SMALL_WRITE = 4096  # bytes up to which pieces are copied together instead of gathered by sendmsg
    MAX_IOV = 32  # pieces of one gathered write
    TICK_MS = 20  # resolution of all timeouts; a tick costs about 2 us
    NEVER_MS = 2000000000  # a timeout that was switched off with 0s: 23 days
    WHEEL_SLOTS = 1024  # power of two; horizon 20 s, longer deadlines are looked at once per turn
    REPLAY_LIMIT = 65536  # bytes of request body kept for a retry (docs/http1.md)
    DISCARD_LIMIT = 65536  # unread request body that is worth reading to keep the connection
    PIPELINE_LIMIT = 32768  # bytes of further requests kept while one is in flight, then reading pauses
    FLUSH_STALLS = 30  # looks, LINGER_MS apart, at which a closing connection's peer may have taken nothing
    IDLE_GRACE_MS = 3000  # an idle connection that is to go may still bring one request
    LINGER_MS = 1000  # read and drop after an error answer, so that the client sees the answer and no reset
    LINGER_BYTES = 4194304  # at most that many
    MAX_INFORMATIONAL = 10  # 1xx answers per request
    PEEK_AFTER_MS = 50  # a pooled connection that idled longer is checked for EOF with one recv(MSG_PEEK)
    MIRROR_LIMIT = 65536  # bytes a mirrored request may lag behind before it is dropped
    EJECT_AFTER = 5  # consecutive failures
    EJECT_MS = 30000  # times the number of ejections so far
    EJECT_MAX_MS = 300000  # longest ejection
    RETRY_BUDGET_PERCENT = 20  # of active requests
    RETRY_BUDGET_MIN = 3  # retries that are always allowed
    RETRY_MAX_ATTEMPTS = 16  # ceiling of retry.attempts
    LOG_BATCH = 65536  # bytes of access log gathered before it is handed over at once
    LOG_FLUSH_MS = 100  # or after that time
    LOG_FIELD = 512  # bytes of a client-sent value in a log line; the rest is cut
    LIMIT_PART = 128  # bytes of a distinct value in a counter's key; longer ones are digested
    LIMIT_MOST = 65535  # requests that one check counts: the script takes two bytes
    LIMIT_BATCH = 512  # counters asked for at once
    LIMIT_SPENT = 65536  # counters remembered as spent
    PROXY_LINE = 108  # PROXY protocol v1 line, from its specification 2.1
    PROXY_V2_MAX = 4096  # PROXY protocol v2 block with TLVs
