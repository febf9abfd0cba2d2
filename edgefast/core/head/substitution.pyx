# Substitution: replaces every match of a regular expression in a text of bytes.
#
# In: RE2 over bytes, the replacement, a text. Out: the text with replacements, or None when it is too long. An empty match counts only where
# no match has just ended, as in RE2's GlobalReplace.
# Must never make a text longer than its caller allows: groups repeat bytes that others have sent.

cdef object _NAMED = re.compile(rb"\{([a-z]+)\}")


cdef list parse_pieces(bytes text, int groups, bint variables):
    """\\0 is the match, \\1 to \\9 its groups, \\\\ a backslash, {name} a variable. None: not valid."""
    cdef list pieces = [], parts = text.split(b"\\"), found = []
    cdef int at = 1
    pieces.append(parts[0])
    while at < len(parts):
        part = parts[at]
        if part[:1].isdigit() and int(part[:1]) <= groups:
            pieces += (int(part[:1]), part[1:])
        elif not part and at + 1 < len(parts):  # "\\": what follows is no escape
            at += 1
            pieces.append(b"\\" + parts[at])
        else:
            return None
        at += 1
    for piece in pieces:
        if isinstance(piece, int) or not variables:
            found.append(piece)
        else:
            found += [one.decode() if i % 2 else one for i, one in enumerate(_NAMED.split(piece))]
    return [piece for piece in found if isinstance(piece, int) or piece]


cdef bytes join_pieces(list pieces, dict variables):
    """Of a replacement without groups."""
    return b"".join([piece if isinstance(piece, bytes) else variables[piece] for piece in pieces])


cdef class Substitution:
    def __init__(self, Engine engine, str pattern, str value, bint variables):
        """`value`: as parse_pieces; `variables`: it may have some."""
        try:
            regex = engine.tables.byte_regex(pattern.encode())
        except re2.error as error:
            _log.error("a rewrite cannot be used: %s", error)
            return
        self.pieces = parse_pieces(value.encode(), regex.groups, variables)
        if self.pieces is None:
            _log.error("a rewrite cannot be used: %r is not a valid substitution for %r", value, pattern)
            return
        self.regex = regex

    cdef bytes replace(self, bytes text, Py_ssize_t most, dict variables, bint *matched):
        """`most`: bytes of the result up to its last match."""
        cdef Py_ssize_t at = 0, begin, end, last = -1, length = 0
        cdef list out = []
        matched[0] = False
        if self.regex is None:
            return None
        while at <= PyBytes_GET_SIZE(text):
            match = self.regex.search(text, at)
            if match is None:
                break
            matched[0] = True
            begin, end = match.span()
            out.append(text[at:begin])
            length += begin - at
            if begin == end == last:  # an empty match where one has just ended
                out.append(text[begin:begin + 1])
                length += 1
                at = begin + 1
                continue
            for piece in self.pieces:
                if isinstance(piece, bytes):
                    part = piece
                else:
                    part = (match.group(piece) or b"") if isinstance(piece, int) else variables[piece]
                out.append(part)
                length += len(part)
                if length > most:
                    return None
            at = last = end
            if begin == end and end == PyBytes_GET_SIZE(text):
                break
        out.append(text[at:])
        return b"".join(out)
