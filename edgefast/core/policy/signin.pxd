# Sign-in: the redirect that a client without a valid credential gets in place of 401.

cdef class SignIn:
    cdef:
        list parts              # bytes: text; str: a variable (SIGN_IN_VARIABLES of ir.policy)

    cdef bytes line(self, Exchange ex, Routed *at)
