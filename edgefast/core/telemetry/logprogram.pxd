# Log program: configured access log lines as flat programs, and their values.

# How a value is written.
cdef enum LogMode:
    M_TEXT = 0      # into a text line; what is absent is "-"
    M_PART = 1      # into a JSON string that has other parts; what is absent is "-"
    M_VALUE = 2     # a JSON value with its member's name; what is absent is null
    M_FIELD = 3     # the same; what is absent is left out

# What a value can be.
cdef enum LogShape:
    S_ABSENT = 0
    S_BYTES = 1     # data, n: to be escaped
    S_NUMBER = 2    # number
    S_JSON = 3      # data, n: JSON already

cdef struct LogOp:
    int kind                # K_*
    LogMode mode
    uint32_t limit          # bytes of the value at most
    int at                  # place in `things`: what the operator needs besides
    const uint8_t *lead     # the literal; `,"name":` of a member; a header's name
    uint32_t lead_len
    const uint8_t *name     # header
    uint32_t name_len, name_hash
    const uint8_t *other    # header to take when the first is not there
    uint32_t other_len, other_hash
    bint hides, other_hides     # the header is a credential: its length is told in its place

cdef struct LogValue:
    LogShape shape
    const uint8_t *data
    size_t n
    uint64_t number

cdef struct LogMoment:
    int64_t now             # us since 1970
    int64_t took            # us; -1: never became a request
    int status


# A time as text, in UTC; the parts that stay for a second are kept.
cdef class TimeForm:
    cdef:
        list parts              # text for strftime, digits of a fraction, or None: seconds since 1970
        dict seconds            # second -> list of bytes and digits

    cdef int write(self, Out *out, int64_t us) except -1


cdef class LogProgram(LogFormat):
    cdef:
        Engine engine
        LogOp *ops
        uint32_t n
        bint is_text
        list things             # keeps what ops point to
        bytes hostname
        Out scratch             # a value that is put together
        object held             # keeps the value that was read last

    cdef int run(self, Out *out, Peer peer, Exchange ex, LogMoment *moment, bytes reason) except -1
    cdef int put(self, LogValue *v, bytes text) except -1
