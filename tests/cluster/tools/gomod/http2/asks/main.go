// Command asks is a client as services in Go have it: net/http's, over HTTP/2 alone, in clear text or over TLS.
//
// In: where to ask, how often, and a body to post. Out: a line for each request that was not answered as it should be, then "good N".
// It repeats nothing by itself: what net/http repeats because nothing was done for it is part of what is tried.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

var (
	url     = flag.String("url", "", "what is asked for; http:// is HTTP/2 with prior knowledge")
	host    = flag.String("host", "", "the name that it is asked under")
	trusted = flag.String("ca", "", "file with the authority of the other side")
	count   = flag.Int64("n", 1000, "requests")
	clients = flag.Int("c", 8, "requests at a time")
	size    = flag.Int("body", 0, "bytes that are posted; 0: GET")
	status  = flag.Int("status", 200, "what is right")
	endless = flag.Bool("until-eof", false, "go on until the standard input ends, instead of counting")
)

func main() {
	flag.Parse()
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	config := &tls.Config{ServerName: *host}
	if *trusted != "" {
		pem, err := os.ReadFile(*trusted)
		if err != nil {
			panic(err)
		}
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(pem)
	}
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: config, Protocols: &protocols},
		Timeout:       time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	var over atomic.Bool
	if *endless {
		go func() {
			io.Copy(io.Discard, os.Stdin)
			over.Store(true)
		}()
	}
	var asked, good atomic.Int64
	more := func() bool { return !over.Load() && (asked.Add(1) <= *count || *endless) }
	var all sync.WaitGroup
	for range *clients {
		all.Go(func() {
			for more() {
				if err := ask(client); err != nil {
					fmt.Println(err)
				} else {
					good.Add(1)
				}
			}
		})
	}
	all.Wait()
	fmt.Println("good", good.Load())
}

func ask(client *http.Client) error {
	method, body := "GET", io.Reader(nil)
	if *size > 0 {
		method, body = "POST", bytes.NewReader(make([]byte, *size))
	}
	request, err := http.NewRequest(method, *url, body)
	if err != nil {
		return err
	}
	request.Host = *host
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err = io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != *status || answer.ProtoMajor != 2 {
		return fmt.Errorf("%s %d", answer.Proto, answer.StatusCode)
	}
	return nil
}
