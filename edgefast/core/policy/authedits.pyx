# Auth edits: header edits of a gRPC authorization service: which are allowed, and their effect on a request and its answer.
#
# In: a CheckAnswer, untrusted; an admitted request; heads on their way to the client.
# Out: the request's lines after the edits, in every spelling that a backend may take for them; lines for the client. No service edits
# framing, or fields of a connection or the proxy. Of one header the edit of the first service stays.
# Must never admit a line that could be read as two.
# Source: envoy/service/auth/v3/external_auth.proto (OkHttpResponse, DeniedHttpResponse).

cdef frozenset _NEVER_ANSWERED = frozenset((  # towards the client; of a denial what a body has besides is its own
    b"connection", b"content-length", b"transfer-encoding", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"upgrade", b"expect",
    b"http2-settings", b"date", b"server",
))
cdef frozenset _NEVER_ADDED = _NEVER_ANSWERED | {b"content-encoding", b"content-range", b"content-type"}
cdef frozenset _NEVER_EDITED = frozenset([name.encode() for name in _NEVER_SET])
cdef object _NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+")
cdef object _VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")


cdef bytes edit_line(bytes name, bytes value, frozenset never):
    """The line; b"": it is not the service's to say; None: there is no such line."""
    if name.startswith(b":"):
        return b""
    if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        return None
    if name.replace(b"_", b"-") in never or name.startswith(b"x-edge-"):
        return b""
    return b"%b: %b\r\n" % (name, value.strip(b" \t"))


cdef list edit_lines(list headers, frozenset never):
    """As AuthEdits has them; None: one of them is no line."""
    cdef list found = []
    cdef bytes line
    for name, value, action in headers:
        line = edit_line(name, value, never)
        if line is None:
            return None
        if line:
            found.append((name, action, line))
    return found


cdef bytes denial_lines(CheckAnswer said):
    """For the client; what its body is comes first (type_line). A line that is none is left out: it is denied all the same."""
    cdef list lines = []
    cdef bytes line
    for name, value, _ in said.headers:
        line = edit_line(name, value, _NEVER_ANSWERED)
        if line and name == b"content-type":
            lines.insert(0, line)
        elif line:
            lines.append(line)
    return b"".join(lines)


cdef AuthEdits make_edits(CheckAnswer said):
    """None: it asks for what is not done here, so what would pass were not what the service has let pass."""
    cdef AuthEdits edits = AuthEdits.__new__(AuthEdits)
    cdef list removed = []
    if said.asks_query:
        return None
    edits.request = edit_lines(said.headers, _NEVER_EDITED)
    edits.answer = edit_lines(said.added, _NEVER_ADDED)
    if edits.request is None or edits.answer is None:
        return None
    for name in said.removed:
        if name.startswith(b":"):
            continue
        if not _NAME.fullmatch(name):
            return None
        if name.replace(b"_", b"-") not in _NEVER_EDITED - {b"content-type"} and not name.startswith(b"x-edge-"):
            removed.append(name.decode())
            edits.size += len(name)
    if removed:
        edits.removed = HeaderNames(removed)
    for _, _, line in edits.request + edits.answer:
        edits.size += len(line)
    return edits


cdef int drop_lines(RuleAuthFlow flow, HeaderNames names) except -1:
    """No line of the client's that a backend may take for one of these is there any more, for whoever comes next."""
    cdef Routed *at = &flow.at
    cdef ef_head *head = at.head
    cdef ef_span *span
    cdef uint16_t i, kept = 0, seen = 0, total = head.n_spans + at.hidden
    for i in range(total):
        span = &head.spans[i]
        if names.covers(at.base + span.name_off, span.name_len) and not is_filter_line(at, span):
            continue
        if i < head.n_spans:
            seen += 1
        if kept != i:
            head.spans[kept] = span[0]
        kept += 1
    head.n_spans = seen
    flow.request.n_spans = seen
    at.hidden = kept - seen
    return 0


cdef bint has_line(RuleAuthFlow flow, bytes name) noexcept:
    """The client has sent it, and it would go on."""
    cdef Routed *at = &flow.at
    cdef const ef_span *span
    cdef uint16_t i
    for i in range(at.head.n_spans):
        span = &at.head.spans[i]
        if (
            span.name_len == PyBytes_GET_SIZE(name) and not span.flags & flow.ex.settings.drop_flags
            and strncasecmp(PyBytes_AS_STRING(name), <const char *>at.base + span.name_off, span.name_len) == 0
        ):
            return True
    return False


cdef class AuthEdits:
    cdef int apply(self, RuleAuthFlow flow) except -1:
        """To a request that passes: its lines, those that services set, and what is kept for its answer."""
        cdef Exchange ex = flow.ex
        cdef ServiceAuthResponse auth_result = ex.auth_result
        cdef list names = [], lines = []
        cdef HeaderNames over
        said = {fold_line(line) for line in (flow.lines + (ex.filter_lines or b"")).splitlines()}
        for name, action, line in self.request:
            folded = fold_line(line)
            if folded in said:
                continue  # an earlier service's word
            there = has_line(flow, name) or any([one[0] == folded for one in lines])
            if (action == ACTION_ADD_IF_ABSENT and there) or (action == ACTION_OVERWRITE_IF_THERE and not there):
                continue
            if action != ACTION_APPEND:
                names.append(name.decode())
                lines = [one for one in lines if one[0] != folded]
            lines.append((folded, line))
        if auth_result is None:
            auth_result = ex.auth_result = ServiceAuthResponse.__new__(ServiceAuthResponse)
            auth_result.names = []
        if names:
            over = HeaderNames(dict.fromkeys(names))
            drop_lines(flow, over)
            auth_result.names.append(over)
        if self.removed is not None:
            drop_lines(flow, self.removed)
            auth_result.names.append(self.removed)
            lines = [one for one in lines if not covers_name(self.removed, one[0])]
        flow.lines += b"".join([one[1] for one in lines])
        if self.answer:
            if auth_result.answer is None:
                auth_result.answer = []
            auth_result.answer += [(*one, self.on) for one in self.answer]
        return 0

    cdef size_t cost(self) noexcept:
        """Bytes that it takes, about."""
        return self.size + AUTH_CACHE_ENTRY // 2 * <size_t>(PyList_GET_SIZE(self.request) + PyList_GET_SIZE(self.answer))


cdef bint covers_name(HeaderNames names, bytes name) noexcept:
    return names.covers(<const uint8_t *>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name))


cdef class ServiceAuthResponse:
    cdef bytes lines(self, Exchange ex, const uint8_t *base, ef_head *head):
        """For the client, beside the lines of this head (NULL: it is an answer of the proxy's own, which says nothing of them); those of
        the head that they are in place of go no further."""
        cdef list lines = []
        cdef ef_span *span
        cdef uint16_t i
        if self.answer is None:
            return b""
        status = ex.status if head == NULL else head.response_status
        for name, action, line, on in self.answer:
            if on is not None and status not in on:
                continue
            if (ex.grpc and name in GRPC_OWN_LINES) or (ex.cors_lines is not None and name in _CORS_OWN):
                continue
            here = [one for one in lines if one[0] == name]
            there = len(here) > 0
            if head != NULL:
                for i in range(head.n_spans):
                    span = &head.spans[i]
                    if span.flags & EF_SPAN_HOP or span.name_len != <uint32_t>len(name) or strncasecmp(
                        <const char *>base + span.name_off, <const char *>PyBytes_AS_STRING(name), span.name_len
                    ):
                        continue
                    there = True
                    if action == ACTION_OVERWRITE or action == ACTION_OVERWRITE_IF_THERE:
                        span.flags |= EF_SPAN_HOP
            if (action == ACTION_ADD_IF_ABSENT and there) or (action == ACTION_OVERWRITE_IF_THERE and not there):
                continue
            if action == ACTION_OVERWRITE or action == ACTION_OVERWRITE_IF_THERE:
                lines = [one for one in lines if one[0] != name]
            lines.append((name, line))
        return b"".join([one[1] for one in lines])

    cdef int drop_trailers(self, Out *lines) except -1:
        """Fields behind the body of names that services have set or removed."""
        cdef HeaderNames names
        for names in self.names:
            names.drop_fields(lines)
        return 0
