"""gRPC on the wire: real clients and servers of it through a real proxy."""
