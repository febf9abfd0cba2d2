# Path pattern: rewrites a path by a regular expression (HTTPRouteFilter urlRewrite ReplaceRegexMatch).
#
# In: RE2 over bytes, the replacement, the normalized path without its query. Out: the path for the backend, or None. None: the result is no
# path, or servers read it as another ("/files/../secret"), which would bypass the rule's access checks. An empty match counts only where no
# match has just ended, as in RE2's GlobalReplace.

cdef class PathPattern:
    def __init__(self, Engine engine, str pattern, str substitution):
        """substitution: \\0 is the match, \\1 to \\9 its groups, \\\\ a backslash. One that cannot be used leaves no path at all."""
        cdef bytes text = substitution.encode()
        cdef list pieces = [], parts = text.split(b"\\")
        self.engine = engine
        try:
            regex = engine.tables.byte_regex(pattern.encode())
        except re2.error as error:
            _log.error("a rewrite cannot be used: %s", error)
            return
        pieces.append(parts[0])
        at = 1
        while at < len(parts):
            part = parts[at]
            if part[:1].isdigit() and int(part[:1]) <= regex.groups:
                pieces += (int(part[:1]), part[1:])
            elif not part and at + 1 < len(parts):  # "\\": what follows is no escape
                at += 1
                pieces.append(b"\\" + parts[at])
            else:
                _log.error("a rewrite cannot be used: %r is not a valid substitution for %r", substitution, pattern)
                return
            at += 1
        self.pieces = [piece for piece in pieces if isinstance(piece, int) or piece]
        self.regex = regex

    cdef bytes replace(self, const uint8_t *path, size_t size):
        cdef bytes text = path[:size], result
        cdef Py_ssize_t at = 0, begin, end, last = -1, length = 0
        cdef list out = []
        cdef uint8_t byte
        if self.regex is None:
            return None
        while at <= PyBytes_GET_SIZE(text):
            match = self.regex.search(text, at)
            if match is None:
                break
            begin, end = match.span()
            out.append(text[at:begin])
            length += begin - at
            if begin == end == last:  # an empty match where one has just ended
                out.append(text[begin:begin + 1])
                length += 1
                at = begin + 1
                continue
            for piece in self.pieces:
                part = piece if isinstance(piece, bytes) else match.group(piece) or b""
                out.append(part)
                length += len(part)
            if length > PATH_REWRITTEN:
                return None
            at = last = end
            if begin == end and end == PyBytes_GET_SIZE(text):
                break
        out.append(text[at:])
        result = b"".join(out)
        if not result.startswith(b"/") or PyBytes_GET_SIZE(result) > PATH_REWRITTEN:
            return None
        for byte in result:
            if byte <= 32 or byte == 127 or byte == c"?" or byte == c"#":
                return None
        return result if self.is_plain(result, text) else None

    cdef bint is_plain(self, bytes path, bytes before) except -1:
        """It is in normal form, and has no escaped slashes where there were none."""
        cdef size_t size = 0
        cdef int escaped = 0, had = 0
        if ef_path_normalize(
            <const uint8_t *>PyBytes_AS_STRING(path), PyBytes_GET_SIZE(path), self.engine.scratch, self.engine.scratch_size, &size, &escaped
        ) != EF_PATH_SAME:
            return False
        if escaped:
            ef_path_normalize(
                <const uint8_t *>PyBytes_AS_STRING(before), PyBytes_GET_SIZE(before), self.engine.scratch, self.engine.scratch_size, &size, &had
            )
        return had or not escaped
