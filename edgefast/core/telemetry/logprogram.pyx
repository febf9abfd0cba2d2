# Log program: configured access log lines (docs/guides/access-log.md): compiled once at apply, run off the response path.
#
# In: ir.AccessLog, then a finished exchange or a refused message. Out: one line. Every byte that is not the template's own is escaped: a
# value can end neither a line nor a string. Costs nothing where lines are the default ones.

# Kinds of values; logvalue.pyx gives them.
cdef enum:
    K_LITERAL = 0
    K_REQ = 1
    K_RESP = 2
    K_START_TIME = 3
    K_EMIT_TIME = 4
    K_CODE = 5
    K_DETAILS = 6
    K_FLAGS = 7
    K_FLAGS_LONG = 8
    K_DURATION = 9
    K_RESPONSE_DURATION = 10
    K_RESPONSE_TX_DURATION = 11
    K_BYTES_RECEIVED = 12
    K_BYTES_SENT = 13
    K_PROTOCOL = 14
    K_ROUTE_NAME = 15
    K_STREAM_ID = 16
    K_HOSTNAME = 17
    K_UPSTREAM_CLUSTER = 18
    K_UPSTREAM_PROTOCOL = 19
    K_TRIES = 20
    K_TRANSPORT_FAILURE = 21
    K_NEVER = 22
    K_SERVER_NAME = 23
    # Addresses: four of each, in this order: whole, without its port, the port alone.
    K_UPSTREAM_REMOTE = 24
    K_UPSTREAM_LOCAL = 28
    K_REMOTE = 32
    K_DIRECT = 36
    K_LOCAL = 40
    K_TRACE_ID = 44
    K_TLS_VERSION = 45
    K_TLS_CIPHER = 46
    K_TLS_GROUP = 47
    K_TLS_RESUMED = 48
    K_GRPC_NUMBER = 49
    K_GRPC_CAMEL = 50
    K_GRPC_SNAKE = 51
    # Fields of the default line.
    K_FIELDS = 52

cdef tuple LOG_FIELDS = (
    "time", "client", "peer", "method", "host", "path", "status", "flags", "route", "rule", "limit", "limit_window",
    "limit_remaining", "backend", "endpoint", "request_id", "bytes_received", "bytes_sent", "duration_ms", "upstream_ms", "tries",
    "user_agent", "trace_id", "reason", "grpc_status", "policy", "policy_rule", "user",
    "upstream_tls_failure",
)

_LOG_KINDS = {
    "REQ": K_REQ,
    "RESP": K_RESP,
    "START_TIME": K_START_TIME,
    "EMIT_TIME": K_EMIT_TIME,
    "RESPONSE_CODE": K_CODE,
    "RESPONSE_CODE_DETAILS": K_DETAILS,
    "RESPONSE_FLAGS": K_FLAGS,
    "RESPONSE_FLAGS_LONG": K_FLAGS_LONG,
    "GRPC_STATUS": K_GRPC_CAMEL,
    "GRPC_STATUS_NUMBER": K_GRPC_NUMBER,
    "DURATION": K_DURATION,
    "RESPONSE_DURATION": K_RESPONSE_DURATION,
    "RESPONSE_TX_DURATION": K_RESPONSE_TX_DURATION,
    "BYTES_RECEIVED": K_BYTES_RECEIVED,
    "BYTES_SENT": K_BYTES_SENT,
    "PROTOCOL": K_PROTOCOL,
    "ROUTE_NAME": K_ROUTE_NAME,
    "STREAM_ID": K_STREAM_ID,
    "TRACE_ID": K_TRACE_ID,
    "HOSTNAME": K_HOSTNAME,
    "UPSTREAM_HOST": K_UPSTREAM_REMOTE,
    "UPSTREAM_CLUSTER": K_UPSTREAM_CLUSTER,
    "UPSTREAM_CLUSTER_RAW": K_UPSTREAM_CLUSTER,
    "UPSTREAM_PROTOCOL": K_UPSTREAM_PROTOCOL,
    "UPSTREAM_REMOTE_ADDRESS": K_UPSTREAM_REMOTE,
    "UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT": K_UPSTREAM_REMOTE + 1,
    "UPSTREAM_REMOTE_PORT": K_UPSTREAM_REMOTE + 2,
    "UPSTREAM_LOCAL_ADDRESS": K_UPSTREAM_LOCAL,
    "UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT": K_UPSTREAM_LOCAL + 1,
    "UPSTREAM_LOCAL_PORT": K_UPSTREAM_LOCAL + 2,
    "UPSTREAM_REQUEST_ATTEMPT_COUNT": K_TRIES,
    "UPSTREAM_TRANSPORT_FAILURE_REASON": K_TRANSPORT_FAILURE,
    "UPSTREAM_TLS_FAILURE_REASON": K_FIELDS + LOG_FIELDS.index("upstream_tls_failure"),
    "CONNECTION_TERMINATION_DETAILS": K_NEVER,
    "DOWNSTREAM_REMOTE_ADDRESS": K_REMOTE,
    "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT": K_REMOTE + 1,
    "DOWNSTREAM_REMOTE_PORT": K_REMOTE + 2,
    "DOWNSTREAM_DIRECT_REMOTE_ADDRESS": K_DIRECT,
    "DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT": K_DIRECT + 1,
    "DOWNSTREAM_DIRECT_REMOTE_PORT": K_DIRECT + 2,
    "DOWNSTREAM_LOCAL_ADDRESS": K_LOCAL,
    "DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT": K_LOCAL + 1,
    "DOWNSTREAM_LOCAL_PORT": K_LOCAL + 2,
    "REQUESTED_SERVER_NAME": K_SERVER_NAME,
    "DOWNSTREAM_TLS_VERSION": K_TLS_VERSION,
    "DOWNSTREAM_TLS_CIPHER": K_TLS_CIPHER,
    "DOWNSTREAM_TLS_GROUP": K_TLS_GROUP,
    "DOWNSTREAM_TLS_RESUMED": K_TLS_RESUMED,
    **{name: K_FIELDS + at for at, name in enumerate(LOG_FIELDS)},
}


_TIME_PARTS = re.compile(r"%(?:([1-9]?)(f)|(s))|((?:[^%]|%[^1-9fs])+)", re.DOTALL)


cdef class TimeForm:
    def __init__(self, str form):
        self.parts = []
        self.seconds = {}
        for found in _TIME_PARTS.finditer(form or "%Y-%m-%dT%H:%M:%S.%3fZ"):
            digits, fraction, seconds, other = found.groups()
            if fraction:
                self.parts.append(int(digits or 9))
            elif seconds:
                self.parts.append(None)
            else:
                self.parts.append(other.replace("%z", "+0000").replace("%Z", "UTC"))

    cdef int write(self, Out *out, int64_t us) except -1:
        cdef int64_t second = us // 1000000
        cdef int64_t fraction
        cdef int i, digits
        rendered = self.seconds.get(second)
        if rendered is None:
            if len(self.seconds) >= 16:  # requests that began in many different seconds
                self.seconds.clear()
            moment = time.gmtime(second)
            rendered = self.seconds[second] = [
                part if isinstance(part, int) else b"%d" % second if part is None else time.strftime(part, moment).encode()
                for part in self.parts
            ]
        for part in rendered:
            if isinstance(part, int):
                digits = part
                fraction = us % 1000000 * 1000
                out_reserve(out, 16)
                for i in range(digits):
                    out.data[out.size + i] = <uint8_t>(48 + fraction // 100000000 % 10)
                    fraction = fraction * 10
                out.size += digits
            else:
                out_reserve(out, PyBytes_GET_SIZE(<bytes>part))
                out_bytes(out, <bytes>part)
        return 0


cdef class LogProgram:
    def __init__(self, Engine engine, spec):
        """spec: ir.AccessLog with text, members or fields. ValueError: an operator that is not known here."""
        self.engine = engine
        self.things = []
        self.hostname = os.uname().nodename.encode()
        pieces = []  # (kind, mode, piece, lead)
        if spec.text:
            self.is_text = True
            for piece in spec.text:
                pieces.append((M_TEXT, piece, b""))
        elif spec.members:
            for member in spec.members:
                lead = b"," + json_encode(member.name) + b":"
                if len(member.pieces) == 1 and member.pieces[0].operator:
                    pieces.append((M_VALUE, member.pieces[0], lead))
                    continue
                pieces.append((M_PART, None, lead + b'"'))
                for piece in member.pieces:
                    if piece.operator:
                        pieces.append((M_PART, piece, b""))
                    else:
                        text = json_encode(piece.text)
                        pieces.append((M_PART, None, text[1:len(text) - 1]))
                pieces.append((M_PART, None, b'"'))
        else:
            for name in spec.fields:
                pieces.append((M_FIELD, ir.LogPiece(operator=name), b',"%b":' % name.encode()))
        self.ops = <LogOp *>calloc(len(pieces) + 1, sizeof(LogOp))
        if self.ops == NULL:
            raise MemoryError
        for mode, piece, lead in pieces:
            self._add(mode, piece, lead)

    def __dealloc__(self):
        free(self.ops)
        free(self.scratch.data)

    def _add(self, LogMode mode, piece, bytes lead):
        cdef LogOp *op = &self.ops[self.n]
        op.mode = mode
        op.limit = LOG_FIELD
        if piece is None or not piece.operator:
            if piece is not None:
                lead = piece.text.encode()
            op.kind = K_LITERAL
        else:
            kind = _LOG_KINDS.get(piece.operator)
            if kind is None:
                raise ValueError(f"unknown operator {piece.operator!r} of the access log")
            op.kind = kind
            if piece.limit:
                op.limit = piece.limit
            if op.kind == K_REQ or op.kind == K_RESP:
                name, other = piece.text.encode(), piece.other.encode()
                self.things += (name, other)
                op.name = <const uint8_t *>PyBytes_AS_STRING(name)
                op.name_len = <uint32_t>len(name)
                op.name_hash = ef_name_hash(op.name, op.name_len)
                op.other = <const uint8_t *>PyBytes_AS_STRING(other)
                op.other_len = <uint32_t>len(other)
                op.other_hash = ef_name_hash(op.other, op.other_len)
                op.hides = is_credential(piece.text)
                op.other_hides = is_credential(piece.other)
                if name.startswith(b":"):
                    pass  # known of every exchange
                elif op.kind == K_REQ:
                    self.wants_request = True
                else:
                    self.wants_answer = True
            elif op.kind == K_GRPC_CAMEL and piece.text != "CAMEL_STRING":
                op.kind = K_GRPC_SNAKE if piece.text == "SNAKE_STRING" else K_GRPC_NUMBER
            elif op.kind == K_START_TIME or op.kind == K_EMIT_TIME:
                op.at = <int>len(self.things)
                self.things.append(TimeForm(piece.text))
            elif K_UPSTREAM_LOCAL <= op.kind < K_REMOTE:
                self.wants_upstream = True
            elif K_REMOTE <= op.kind < K_TRACE_ID:
                self.wants_address = True
        self.things.append(lead)
        op.lead = <const uint8_t *>PyBytes_AS_STRING(lead)
        op.lead_len = <uint32_t>len(lead)
        self.n += 1

    cdef int run(self, Out *out, Peer peer, Exchange ex, LogMoment *moment, bytes reason) except -1:
        """Append a line. `ex` is None for a message that never became a request; `reason` says why then."""
        cdef size_t start = out.size
        cdef uint32_t i
        cdef const LogOp *op
        cdef LogValue v
        for i in range(self.n):
            op = &self.ops[i]
            if op.kind == K_LITERAL:
                out_reserve(out, op.lead_len)
                out_raw(out, op.lead, op.lead_len)
                continue
            v.shape = S_ABSENT
            v.n = 0
            log_value(self, op, peer, ex, moment, reason, &v)
            if v.shape == S_ABSENT and op.mode == M_FIELD:
                continue
            if v.n > op.limit and v.shape == S_BYTES:
                v.n = op.limit
            out_reserve(out, op.lead_len + 6 * v.n + 32)
            out_raw(out, op.lead, op.lead_len)
            if v.shape == S_NUMBER:
                out_number(out, v.number)
            elif op.mode == M_TEXT:
                if v.shape == S_ABSENT:
                    out_raw(out, <const char *>b"-", 1)
                else:
                    log_plain(out, v.data, v.n)
            elif op.mode == M_PART:
                if v.shape == S_ABSENT:
                    out_raw(out, <const char *>b"-", 1)
                else:
                    log_escape(out, v.data, v.n)
            elif v.shape == S_ABSENT:
                out_raw(out, <const char *>b"null", 4)
            elif v.shape == S_JSON:
                out_raw(out, v.data, v.n)
            else:
                out_raw(out, <const char *>b'"', 1)
                log_escape(out, v.data, v.n)
                out_raw(out, <const char *>b'"', 1)
        self.held = None
        out_reserve(out, 4)
        if not self.is_text:
            if out.size == start:
                out_raw(out, <const char *>b"{", 1)
            out.data[start] = c"{"  # in place of the first comma
            out_raw(out, <const char *>b"}", 1)
        out_raw(out, <const char *>b"\n", 1)
        return 0

    cdef int put(self, LogValue *v, bytes text) except -1:
        """A value that lies in a bytes object; None is absent."""
        if text is None:
            return 0
        self.held = text
        v.shape = S_BYTES
        v.data = <const uint8_t *>PyBytes_AS_STRING(text)
        v.n = PyBytes_GET_SIZE(text)
        return 0


cdef void log_plain(Out *out, const uint8_t *data, size_t n) noexcept:
    """Into a text line; the caller has reserved 4 bytes per byte. Quotes and backslashes get a backslash, what is not printable
    ASCII becomes \\xHH."""
    cdef size_t i
    cdef uint8_t c
    for i in range(n):
        c = data[i]
        if c == 34 or c == 92:
            out.data[out.size] = 92
            out.data[out.size + 1] = c
            out.size += 2
        elif c < 32 or c > 126:
            out.data[out.size] = 92
            out.data[out.size + 1] = c"x"
            out.data[out.size + 2] = b"0123456789abcdef"[c >> 4]
            out.data[out.size + 3] = b"0123456789abcdef"[c & 15]
            out.size += 4
        else:
            out.data[out.size] = c
            out.size += 1
