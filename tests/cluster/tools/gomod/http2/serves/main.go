// Command serves is a backend as services in Go are: net/http's server, over HTTP/2 in clear text (prior knowledge) or over TLS.
//
// In: an address. Out: "listening PORT", then answers: each path says what it does. SIGTERM lets it go as net/http does it: GOAWAY,
// what is under way to its end.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

var (
	listen      = flag.String("listen", "127.0.0.1:0", "address")
	certificate = flag.String("cert", "", "file with its certificate: TLS")
	key         = flag.String("key", "", "file with its key")
	streams     = flag.Int("streams", 100, "requests at a time on one connection")
)

func main() {
	flag.Parse()
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler:   paths(),
		Protocols: &protocols,
		HTTP2:     &http.HTTP2Config{MaxConcurrentStreams: *streams},
	}
	at, err := net.Listen("tcp", *listen)
	if err != nil {
		panic(err)
	}
	fmt.Println("listening", at.Addr().(*net.TCPAddr).Port)
	over := make(chan os.Signal, 1)
	signal.Notify(over, syscall.SIGTERM)
	gone := make(chan struct{})
	go func() {
		<-over
		patient, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := server.Shutdown(patient); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		close(gone)
	}()
	if *certificate != "" {
		err = server.ServeTLS(at, *certificate, *key)
	} else {
		err = server.Serve(at)
	}
	if err != http.ErrServerClosed {
		panic(err)
	}
	<-gone
}

func paths() http.Handler {
	all := http.NewServeMux()
	all.HandleFunc("/echo", echo)
	all.HandleFunc("/trailers", trailers)
	all.HandleFunc("/size/{bytes}", size)
	all.HandleFunc("/hints", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		fmt.Fprint(w, "hinted")
	})
	all.HandleFunc("/nothing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	// Without a look at the body: what is left of it is reset, and the answer stands.
	all.HandleFunc("/early", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		fmt.Fprint(w, "no")
	})
	all.HandleFunc("/reset", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	all.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Write(make([]byte, 1000))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	all.HandleFunc("/late", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(20 * time.Millisecond)
		fmt.Fprint(w, "late")
	})
	return all
}

// The body comes back as it comes.
func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Protocol", r.Proto)
	w.Header().Set("X-Length", strconv.FormatInt(r.ContentLength, 10))
	if _, err := io.Copy(w, r.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// The same, and trailers behind it.
func trailers(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Trailer", "X-Bytes")
	w.WriteHeader(http.StatusOK)
	size, err := io.Copy(w, r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("X-Bytes", strconv.FormatInt(size, 10))
	w.Header().Set(http.TrailerPrefix+"X-More", "a b")
}

func size(w http.ResponseWriter, r *http.Request) {
	left, err := strconv.Atoi(r.PathValue("bytes"))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	piece := make([]byte, 100_000)
	for ; left > 0; left -= len(piece) {
		w.Write(piece[:min(left, len(piece))])
	}
}
