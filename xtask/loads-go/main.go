// Command loads puts loads on a server for `cargo xtask http2-clients`, by grpc-go or by Go's
// net/http over HTTP/2:
//
//	loads CLIENT PLAIN SECURE ROOT
//
// CLIENT is grpc-go or net/http, PLAIN and SECURE are ports, and ROOT is the file of the root
// certificate. A line for each cell of the matrix says how it went.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	// How long a request may take on a busy machine.
	deadline = 5 * time.Minute

	largeBytes  = 128 << 20
	partBytes   = 1 << 20
	middleBytes = 100_000
	streams     = 1000
	atOnce      = 100
	cancels     = 3000
	cancelling  = 20
	bursts      = 3
)

func main() {
	client, plain, secure, root := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	switch client {
	case "grpc-go":
		fmt.Println("version", grpc.Version)
		callAll("127.0.0.1:" + plain)
	case "net/http":
		fmt.Println("version", strings.TrimPrefix(runtime.Version(), "go"))
		askAll("https://localhost:"+secure, root)
	}
}

func tell(cell string, work func() error) {
	if err := work(); err != nil {
		fmt.Printf("%s fail: %s\n", cell, strings.ReplaceAll(err.Error(), "\n", " "))
		return
	}
	fmt.Println(cell, "pass")
}

// parallel does the work `count` times, `width` at a time, and returns the first error.
func parallel(count, width int, work func() error) error {
	var left atomic.Int64
	left.Store(int64(count))
	errs := make(chan error, width)
	for range width {
		go func() {
			for left.Add(-1) >= 0 {
				if err := work(); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	var first error
	for range width {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// beside does the small work again and again until the large one has ended.
func beside(large, small func() error) error {
	done := make(chan error, 1)
	go func() { done <- large() }()
	for {
		select {
		case err := <-done:
			return err
		default:
			if err := small(); err != nil {
				return fmt.Errorf("a small request: %w", err)
			}
		}
	}
}

func within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), deadline)
}

// raw is the codec of messages that are bytes.
type raw struct{}

func (raw) Name() string { return "raw" }

func (raw) Marshal(message any) ([]byte, error) { return *message.(*[]byte), nil }

func (raw) Unmarshal(data []byte, message any) error {
	*message.(*[]byte) = append([]byte(nil), data...)
	return nil
}

type caller struct{ connection *grpc.ClientConn }

func callAll(target string) {
	connection, err := grpc.NewClient("passthrough:///"+target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{})))
	if err != nil {
		fmt.Println("download fail:", err)
		return
	}
	one := caller{connection}
	tell("download", func() error {
		return beside(func() error { return one.count(largeBytes/partBytes, partBytes) }, one.echo)
	})
	tell("streams", func() error {
		return parallel(streams, atOnce, func() error { return one.count(1, middleBytes) })
	})
	tell("upload", one.upload)
	tell("cancel", func() error { return parallel(cancels, cancelling, one.cancel) })
	tell("burst", func() error {
		for range bursts {
			if err := one.burst(); err != nil {
				return err
			}
		}
		return one.echo()
	})
}

// start begins a call and sends its first message.
func (one caller) start(ctx context.Context, method, message string) (grpc.ClientStream, error) {
	kind := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	stream, err := one.connection.NewStream(ctx, kind, "/turnpike.Judge/"+method)
	if err != nil || message == "" {
		return stream, err
	}
	bytes := []byte(message)
	if err := stream.SendMsg(&bytes); err != nil {
		return nil, err
	}
	return stream, stream.CloseSend()
}

func (one caller) echo() error {
	ctx, cancel := within()
	defer cancel()
	sent, got := []byte("small"), []byte{}
	if err := one.connection.Invoke(ctx, "/turnpike.Judge/echo", &sent, &got); err != nil {
		return err
	}
	return expect(string(got), "small")
}

func (one caller) count(count, size int) error {
	ctx, cancel := within()
	defer cancel()
	stream, err := one.start(ctx, "count", fmt.Sprintf("[%d, %d]", count, size))
	if err != nil {
		return err
	}
	for number := 0; ; number++ {
		var message []byte
		err := stream.RecvMsg(&message)
		if errors.Is(err, io.EOF) {
			return expect(fmt.Sprint(number, " messages"), fmt.Sprint(count, " messages"))
		}
		if err != nil {
			return err
		}
		if wanted := len(fmt.Sprint(number, ",")) + size - 1; len(message) < wanted {
			return fmt.Errorf("a message of %d bytes", len(message))
		}
	}
}

func (one caller) upload() error {
	ctx, cancel := within()
	defer cancel()
	stream, err := one.start(ctx, "sum", "")
	if err != nil {
		return err
	}
	part := make([]byte, partBytes)
	for range largeBytes / partBytes {
		if err := stream.SendMsg(&part); err != nil {
			return stream.RecvMsg(&part)
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	var answer []byte
	if err := stream.RecvMsg(&answer); err != nil {
		return err
	}
	return expect(string(answer), fmt.Sprint(largeBytes/partBytes, " ", largeBytes))
}

func (one caller) cancel() error {
	ctx, cancel := within()
	defer cancel()
	stream, err := one.start(ctx, "flood", "loads")
	if err != nil {
		return err
	}
	var message []byte
	return stream.RecvMsg(&message)
}

// burst begins calls that are not answered, and cancels all of them at once.
func (one caller) burst() error {
	ctx, cancel := within()
	defer cancel()
	for range atOnce {
		if _, err := one.start(ctx, "wait", "loads"); err != nil {
			return err
		}
	}
	return nil
}

type asker struct {
	client *http.Client
	at     string
}

func askAll(at, root string) {
	roots := x509.NewCertPool()
	text, err := os.ReadFile(root)
	if err != nil || !roots.AppendCertsFromPEM(text) {
		fmt.Println("download fail: no root:", err)
		return
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2: true,
		// A PING whenever nothing came for so long.
		HTTP2: &http.HTTP2Config{SendPingTimeout: time.Millisecond},
	}
	one := asker{&http.Client{Transport: transport, Timeout: deadline}, at}
	tell("download", func() error {
		return both(func(before string) error {
			small := func() error { return one.get("/600.html", 600) }
			return beside(func() error { return one.get(before+"/large", largeBytes) }, small)
		})
	})
	tell("streams", func() error {
		return parallel(streams, atOnce, func() error { return one.get("/middle", middleBytes) })
	})
	tell("upload", func() error { return both(one.put) })
	tell("cancel", func() error { return parallel(cancels, cancelling, one.cancel) })
	tell("burst", func() error {
		for range bursts {
			one.burst()
		}
		return one.get("/600.html", 600)
	})
}

// both does the work with a file of the server's, and with one of another server behind it.
func both(work func(before string) error) error {
	for _, before := range []string{"", "/passed"} {
		if err := work(before); err != nil {
			return fmt.Errorf("%s: %w", before, err)
		}
	}
	return nil
}

func (one asker) open(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, "GET", one.at+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := one.client.Do(request)
	if err != nil {
		return nil, err
	}
	return response, expect(fmt.Sprint(response.Proto, " ", response.StatusCode), "HTTP/2.0 200")
}

func (one asker) get(path string, size int64) error {
	response, err := one.open(context.Background(), path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	got, err := io.Copy(io.Discard, response.Body)
	if err != nil {
		return err
	}
	return expect(fmt.Sprint(got, " bytes"), fmt.Sprint(size, " bytes"))
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(into []byte) (int, error) { return len(into), nil }

func (one asker) put(before string) error {
	body := io.LimitReader(zeros{}, largeBytes)
	request, err := http.NewRequest("PUT", one.at+before+"/put/net-http", body)
	if err != nil {
		return err
	}
	request.ContentLength = largeBytes
	response, err := one.client.Do(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != 201 && response.StatusCode != 204 {
		return errors.New(response.Status)
	}
	return one.get("/put/net-http", largeBytes)
}

func (one asker) cancel() error {
	ctx, cancel := within()
	defer cancel()
	response, err := one.open(ctx, "/large")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.ReadFull(response.Body, make([]byte, 10_000))
	return err
}

// burst begins requests that are not answered, and cancels all of them at once.
func (one asker) burst() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second/2)
	defer cancel()
	var group sync.WaitGroup
	for range atOnce {
		group.Add(1)
		go func() {
			defer group.Done()
			if response, err := one.open(ctx, "/silent"); err == nil {
				response.Body.Close()
			}
		}()
	}
	group.Wait()
}

func expect(found, wanted string) error {
	if found != wanted {
		return fmt.Errorf("%.100q instead of %.100q", found, wanted)
	}
	return nil
}
