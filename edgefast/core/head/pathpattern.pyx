# Path pattern: rewrites a path by a regular expression (HTTPRouteFilter urlRewrite ReplaceRegexMatch).
#
# In: a substitution, the normalized path without its query. Out: the path for the backend, or None. None: the result is no path, or servers
# read it as another ("/files/../secret"), which would bypass the rule's access checks.

cdef class PathPattern:
    def __init__(self, Engine engine, str pattern, str substitution):
        """substitution: as parse_pieces; one that cannot be used leaves no path at all."""
        self.engine = engine
        self.substitution = Substitution(engine, pattern, substitution, False)

    cdef bytes replace(self, const uint8_t *path, size_t size):
        cdef bytes text = path[:size], result
        cdef bint matched
        cdef uint8_t byte
        result = self.substitution.replace(text, PATH_REWRITTEN, None, &matched)
        if result is None:
            return None
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
