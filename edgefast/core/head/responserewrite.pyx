# Response rewrite: changes Location, Refresh and Set-Cookie in a backend's response (ir.ResponseRewrite; nginx ngx_http_proxy_module.c).
#
# In: the head of a response. Out: the new lines; the spans of the lines that they replace are marked. Of cookies, all lines from the first
# changed one on are new, so that their order stays. Lines that a ResponseHeaderModifier removes or sets are not rewritten. A response with
# too many attributes in a cookie, or that grows too much, is not valid (COOKIE_ATTRIBUTES, REWRITE_GROWTH).
# Must never change a response in part.

cdef uint32_t HASH_LOCATION = ef_name_hash(<const uint8_t *>b"location", 8)
cdef uint32_t HASH_REFRESH = ef_name_hash(<const uint8_t *>b"refresh", 7)
cdef uint32_t HASH_SET_COOKIE = ef_name_hash(<const uint8_t *>b"set-cookie", 10)


class _Unfit(Exception):
    """A response that cannot be rewritten."""


cdef class TextRewrite:
    def __init__(self, Engine engine, spec, bint variables):
        """spec: ir.TextRewrite; `variables`: {scheme} and {host} are of the request."""
        if spec.kind == "regex":
            self.substitution = Substitution(engine, spec.pattern, spec.value, variables)
            self.pieces = self.substitution.pieces
            return
        self.exact = spec.kind == "exact"
        self.text = spec.pattern.encode()
        self.pieces = parse_pieces(spec.value.encode(), -1, variables)

    cdef bytes apply(self, bytes value, dict variables):
        """The new value; None: it does not match."""
        cdef bint matched = False
        cdef bytes result
        if self.pieces is None:
            raise _Unfit
        if self.text is None:
            result = self.substitution.replace(value, PyBytes_GET_SIZE(value) + REWRITE_GROWTH, variables, &matched)
            if result is None:
                raise _Unfit
            return result if matched else None
        if self.exact:
            if value.removeprefix(b".").lower() != self.text:
                return None
            result = join_pieces(self.pieces, variables)
            return b"." + result if result and value.startswith(b".") else result
        if not value.startswith(self.text):
            return None
        return join_pieces(self.pieces, variables) + value[PyBytes_GET_SIZE(self.text):]


cdef bytes rewrite_text(list rewrites, bytes value, dict variables):
    """By the first that matches; None: none does."""
    cdef TextRewrite one
    cdef bytes result
    for one in rewrites:
        result = one.apply(value, variables)
        if result is not None:
            return result
    return None


cdef class ResponseRewrite:
    def __init__(self, Engine engine, spec):
        """spec: ir.ResponseRewrite."""
        self.locations = [TextRewrite(engine, one, True) for one in spec.locations]
        self.domains = [TextRewrite(engine, one, False) for one in spec.cookie_domains]
        self.paths = [TextRewrite(engine, one, False) for one in spec.cookie_paths]
        self.wants_host = any("{host}" in one.value for one in spec.locations)

    cdef bytes location(self, bytes value, dict variables):
        return rewrite_text(self.locations, value, variables)

    cdef bytes refresh(self, bytes value, dict variables):
        """The URL behind "url=", to the end of the value (as nginx)."""
        cdef Py_ssize_t at = value.lower().find(b"url=") + 4
        cdef bytes found = rewrite_text(self.locations, value[at:], variables) if at > 3 else None
        return value[:at] + found if found is not None else None

    cdef bytes cookie(self, bytes value):
        cdef list parts, out = []
        cdef bytes part, name, text, found
        cdef bint changed = False
        if value.count(b";") > COOKIE_ATTRIBUTES:
            raise _Unfit
        parts = value.split(b";")
        out.append(parts[0])
        for part in parts[1:]:
            name, equals, text = part.partition(b"=")
            found = None
            if equals:
                name = name.strip(b" \t").lower()
                if name == b"domain":
                    found = rewrite_text(self.domains, text.strip(b" \t"), None)
                    if found is not None and not found:
                        changed = True
                        continue
                elif name == b"path":
                    found = rewrite_text(self.paths, text.strip(b" \t"), None)
            if found is not None:
                part = part[:part.index(b"=") + 1] + found
                changed = True
            out.append(part)
        return b";".join(out) if changed else None

    cdef bytes lines(self, Exchange ex, const uint8_t *base, ef_head *head):
        """The new lines, b"" without any. Marks the spans that they replace."""
        cdef HeaderOps ops = ex.backend.response_ops
        cdef dict variables = {"scheme": b"https" if ex.https else b"http", "host": ex.host}
        cdef list out = []
        cdef bytes value, found
        cdef bint cookies = False  # one was changed: those behind it follow
        cdef bint is_cookie
        cdef Py_ssize_t growth = 0
        cdef ef_span *span
        cdef uint16_t i
        for i in range(head.n_spans):
            span = &head.spans[i]
            is_cookie = span.name_hash == HASH_SET_COOKIE and span.name_len == 10
            if not is_cookie and not (span.name_hash == HASH_LOCATION and span.name_len == 8) and not (
                span.name_hash == HASH_REFRESH and span.name_len == 7
            ):
                continue
            if span.flags & (EF_SPAN_HOP | EF_SPAN_NOMINATED) or (ops is not None and ops.n and ops.drops(base, span)):
                continue
            value = base[span.val_off:span.val_off + span.val_len]
            if is_cookie:
                found = self.cookie(value) if self.domains or self.paths else None
                if found is None and cookies:
                    found = value
                cookies = cookies or found is not None
            elif span.name_len == 8:
                found = self.location(value, variables)
            else:
                found = self.refresh(value, variables)
            if found is None:
                continue
            growth += PyBytes_GET_SIZE(found) - <Py_ssize_t>span.val_len
            if growth > REWRITE_GROWTH:
                raise _Unfit
            out.append(b"%b: %b\r\n" % (base[span.name_off:span.name_off + span.name_len], found))
            span.flags |= EF_SPAN_HOP
        return b"".join(out)


cdef bint rewrite_response(Exchange ex, const uint8_t *base, ef_head *head) except -1:
    """False: the response is not valid."""
    cdef bytes lines
    try:
        lines = ex.rule.response_rewrite.lines(ex, base, head)
    except _Unfit:
        return False
    ex.rewritten = lines or None
    return True
