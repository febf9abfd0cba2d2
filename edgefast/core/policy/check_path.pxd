# Check path: the path of a check, made of parts of the request.

cdef class CheckPath:
    cdef:
        list parts              # bytes: text; str: a variable (CHECK_PATH_VARIABLES of edgefast/api/model/location_template.py)

    cdef bytes expand(self, Exchange ex, Routed *at)
