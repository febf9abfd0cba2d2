# Who a client is, by what its request carries.
include "guard/places.pyx"
include "guard/proof.pyx"
include "guard/tokencache.pyx"
include "guard/tokens.pyx"
