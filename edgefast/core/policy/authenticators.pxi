# Who a client is, by what its request carries.
include "policy/credential_extractor.pyx"
include "policy/authenticator.pyx"
include "policy/tokencache.pyx"
include "policy/tokens.pyx"
