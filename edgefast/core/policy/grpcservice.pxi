# Services of gRPC: their messages, what these do, their calls.

include "policy/protobuf.pyx"
include "policy/check_response.pyx"
include "policy/authedits.pyx"
include "policy/check_request.pyx"
include "policy/check_call.pyx"
include "policy/grpcdenial.pyx"
