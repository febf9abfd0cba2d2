# Substitution: replaces every match of a regular expression.

cdef class Substitution:
    cdef:
        object regex            # None: it cannot be used
        list pieces             # bytes, the number of a group, or the name of a variable

    cdef bytes replace(self, bytes text, Py_ssize_t most, dict variables, bint *matched)


cdef list parse_pieces(bytes text, int groups, bint variables)
cdef bytes join_pieces(list pieces, dict variables)
