# What of a request in flight is different for gRPC.

include "exchange/grpc.pyx"
include "exchange/grpcretry.pyx"
include "exchange/grpcweb.pyx"
include "exchange/protobuf.pyx"
