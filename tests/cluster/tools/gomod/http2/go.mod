module edgefast.test/http2

go 1.26.0
