# Where a request carries a credential.

cdef class Places:
    cdef:
        list headers            # (name in lower case, HeaderNames of it, what stands before the credential or b"")
        list cookies            # names
        list params             # names
        bint several            # the credentials that were found last differ

    cdef bytes find(self, Admittance asker)
    cdef bytes in_headers(self, Admittance asker, bytes found)
    cdef bytes in_cookies(self, Admittance asker, bytes found)
    cdef bytes in_params(self, Admittance asker, bytes found)
    cdef bytes take(self, bytes found, bytes value)
    cdef int strip(self, Admittance asker) except -1
