# CheckResponse: parses the bytes of an authorization service.
#
# In: a message, or its received part. Out: status, headers, body; or that it is invalid. Unknown fields are skipped; the parts of a
# repeated message field are merged, as in Protocol Buffers. Names and values are not validated here (authedits.pyx does).
# Must never read an admission from a part of a message, or keep more than CHECK_LINES lines.
# Source: envoy/service/auth/v3/external_auth.proto, envoy/config/core/v3/base.proto (HeaderValueOption).

cdef int read_code(const uint8_t *data, size_t n, int *code) noexcept:
    """Field 1 of google.rpc.Status and of HttpStatus. -1: it is no message."""
    cdef PbField field
    cdef int64_t at = 0
    while <size_t>at < n:
        at = pb_next(data, n, <size_t>at, &field)
        if at < 0:
            return -1
        if field.number == 1 and field.wire_type == 0:
            code[0] = <int>(<uint32_t>(field.value & 0xFFFFFFFF))
    return 0


cdef class CheckAnswer:
    def __cinit__(self):
        self.body = b""
        self.headers = []
        self.removed = []
        self.added = []

    cdef bint read(self, const uint8_t *data, size_t n, bint whole) except -1:
        """False: it is no such message. Of one that is not whole, every field that is."""
        cdef PbField field
        cdef int64_t at = 0
        while <size_t>at < n:
            at = pb_next(data, n, <size_t>at, &field)
            if at < 0:
                return at == PB_UNFINISHED and not whole
            if field.wire_type != 2:
                continue
            if field.number == 1:
                self.said = True
                if read_code(field.data, field.n, &self.code) < 0:
                    return False
            elif field.number == SIDE_DENIED or field.number == SIDE_OK:
                if self.side != <CheckSide>field.number:  # of one of two the last one counts
                    self.side = <CheckSide>field.number
                    self.status = 0
                    self.body = b""
                    self.headers, self.removed, self.added = [], [], []
                    self.asks_query = False
                if not self.read_side(field.data, field.n):
                    return False
        return True

    cdef bint read_side(self, const uint8_t *data, size_t n) except -1:
        """Of DeniedHttpResponse or OkHttpResponse."""
        cdef PbField field
        cdef int64_t at = 0
        while <size_t>at < n:
            at = pb_next(data, n, <size_t>at, &field)
            if at < 0:
                return False
            if field.wire_type != 2:
                continue
            if field.number == 2:
                if not self.read_header(field.data, field.n, self.headers):
                    return False
            elif self.side == SIDE_DENIED:
                if field.number == 1 and read_code(field.data, field.n, &self.status) < 0:
                    return False
                if field.number == 3:
                    self.body = field.data[:field.n]
            elif field.number == 5:
                self.lines += 1
                if self.lines > CHECK_LINES:
                    return False
                self.removed.append((<bytes>field.data[:field.n]).lower())
            elif field.number == 6:
                if not self.read_header(field.data, field.n, self.added):
                    return False
            elif field.number == 7 or field.number == 8:
                self.asks_query = True
        return True

    cdef bint read_header(self, const uint8_t *data, size_t n, list into) except -1:
        """A HeaderValueOption."""
        cdef PbField field, part
        cdef int64_t at = 0, inner
        cdef bytes name = b"", value = b"", raw = b""
        cdef int action = 0, append = -1
        self.lines += 1
        if self.lines > CHECK_LINES:
            return False
        while <size_t>at < n:
            at = pb_next(data, n, <size_t>at, &field)
            if at < 0:
                return False
            if field.number == 3 and field.wire_type == 0:
                action = <int>(<uint32_t>(field.value & 0xFFFFFFFF))
            elif field.number == 2 and field.wire_type == 2:  # a BoolValue
                append = max(append, 0)
                if read_flag(field.data, field.n, &append) < 0:
                    return False
            elif field.number == 1 and field.wire_type == 2:
                inner = 0
                while <size_t>inner < field.n:
                    inner = pb_next(field.data, field.n, <size_t>inner, &part)
                    if inner < 0:
                        return False
                    if part.wire_type != 2:
                        continue
                    if part.number == 1:
                        name = part.data[:part.n]
                    elif part.number == 2:
                        value = part.data[:part.n]
                    elif part.number == 3:
                        raw = part.data[:part.n]
        if append >= 0:
            action = ACTION_APPEND if append else ACTION_OVERWRITE
        elif action == 0:
            action = ACTION_UNSAID
        elif action < 0 or action > ACTION_OVERWRITE_IF_THERE:
            action = ACTION_OVERWRITE
        into.append((name.lower(), value or raw, action))
        return True

    cdef bint denies(self) noexcept:
        """It has said so already, whatever else it says: with a status, or with an answer for the client."""
        return self.code != 0 or self.side == SIDE_DENIED

    cdef bint passes(self) noexcept:
        """Of a whole message. One that says nothing at all is no leave: a service that forgot to answer gives none."""
        return not self.denies() and (self.said or self.side == SIDE_OK)


cdef int read_flag(const uint8_t *data, size_t n, int *flag) noexcept:
    """Field 1 of BoolValue. -1: it is no message."""
    cdef PbField field
    cdef int64_t at = 0
    while <size_t>at < n:
        at = pb_next(data, n, <size_t>at, &field)
        if at < 0:
            return -1
        if field.number == 1 and field.wire_type == 0:
            flag[0] = field.value != 0
    return 0


def read_check(bytes message, bint whole=True):
    """A CheckResponse as a tuple (code or None, side, status, body, headers, removed, added, asks_query), None where it is none (for tests
    against the twin)."""
    cdef CheckAnswer found = CheckAnswer.__new__(CheckAnswer)
    if not found.read(<const uint8_t *>PyBytes_AS_STRING(message), PyBytes_GET_SIZE(message), whole):
        return None
    return (
        found.code if found.said else None, int(found.side), found.status, found.body, found.headers, found.removed, found.added,
        found.asks_query,
    )
