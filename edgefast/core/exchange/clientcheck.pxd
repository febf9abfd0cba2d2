# Client check: whether the certificate of a connection admits its requests to a listener (ir.ClientRule).

cdef class ClientCheck:
    cdef:
        tuple authorities       # by which certificates must have been verified: name of a Secret, depth
        bint required           # a client must show a certificate
        bint any_issuer         # one that no authority of the listener issued is accepted
        object subject          # an expression that finds something in the subject; None: each subject is accepted
        bytes page              # "location: ...\r\n" for clients without an accepted certificate; None: they get 400

    cdef bint refuse(self, Exchange ex) except -1
    cdef int check(self, Exchange ex) except -1
