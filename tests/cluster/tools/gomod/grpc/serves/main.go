// Command serves is the interop tests' service with reflection, for clients that ask what there is to ask for.
//
// In: an address, a certificate if it speaks TLS. Out: "listening PORT", then answers until SIGTERM.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/interop"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/reflection"
)

var (
	listen      = flag.String("listen", "127.0.0.1:0", "address")
	certificate = flag.String("cert", "", "file with its certificate: TLS")
	key         = flag.String("key", "", "file with its key")
)

func main() {
	flag.Parse()
	at, err := net.Listen("tcp", *listen)
	if err != nil {
		panic(err)
	}
	var options []grpc.ServerOption
	if *certificate != "" {
		shown, err := credentials.NewServerTLSFromFile(*certificate, *key)
		if err != nil {
			panic(err)
		}
		options = append(options, grpc.Creds(shown))
	}
	server := grpc.NewServer(options...)
	grpc_testing.RegisterTestServiceServer(server, interop.NewTestServer())
	reflection.Register(server)
	over := make(chan os.Signal, 1)
	signal.Notify(over, syscall.SIGTERM)
	go func() {
		<-over
		server.GracefulStop()
	}()
	fmt.Println("listening", at.Addr().(*net.TCPAddr).Port)
	if err := server.Serve(at); err != nil {
		panic(err)
	}
}
