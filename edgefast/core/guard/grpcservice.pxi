# Services of gRPC: their messages, what these do, their calls.

include "guard/protobuf.pyx"
include "guard/checkanswer.pyx"
include "guard/authedits.pyx"
include "guard/checkrequest.pyx"
include "guard/checkcall.pyx"
include "guard/grpcdenial.pyx"
