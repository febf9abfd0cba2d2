# Location template: the Location of a redirect from parts of the request.

cdef class LocationTemplate:
    cdef:
        list parts              # bytes, the name of a variable, or the number of a group
        object regex            # None: no expression
        bint relative           # the template begins with one "/"

    cdef bytes expand(self, Exchange ex, Routed *at)
    cdef bytes value(self, Exchange ex, Routed *at, bytes path, str name)
