// Command http3 asks a server what `cargo xtask http3-clients` wants to see, by quic-go:
//
//	http3 PORT KNOWN KEYS
//
// PORT and KNOWN are ports, the second one wants certificates, and KEYS is the folder of the
// certificates. A line for each cell of the matrix says how it went.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go/http3"
)

// How long a request may take on a busy machine.
const deadline = 5 * time.Minute

const (
	largeBytes  = 32 << 20
	middleBytes = 100_000
	smallBytes  = 600
	patternSize = 251
	parallelMax = 60
	rounds      = 10
	cancels     = 200
)

var (
	at, known, keys string
	roots           = x509.NewCertPool()
)

func main() {
	at, known, keys = "https://localhost:"+os.Args[1], "https://localhost:"+os.Args[2], os.Args[3]
	root, err := os.ReadFile(filepath.Join(keys, "root.pem"))
	if err != nil || !roots.AppendCertsFromPEM(root) {
		fmt.Println("page fail: no root:", err)
		return
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "github.com/quic-go/quic-go" {
				fmt.Println("version", module.Version)
			}
		}
	}
	tell("page", page)
	tell("download", download)
	tell("upload", upload)
	tell("ranges", ranges)
	tell("parallel", parallel)
	tell("cancel", cancel)
	tell("certificate", certificate)
	tell("resumed", resumed)
	tell("early", early)
}

func tell(cell string, work func() error) {
	if err := work(); err != nil {
		fmt.Printf("%s fail: %v\n", cell, err)
		return
	}
	fmt.Println(cell, "pass")
}

// client is one with a connection of its own, which ends with it.
func client(config *tls.Config) (*http.Client, func()) {
	if config == nil {
		config = &tls.Config{}
	}
	config.RootCAs = roots
	transport := &http3.Transport{TLSClientConfig: config}
	return &http.Client{Transport: transport, Timeout: deadline}, func() { transport.Close() }
}

func read(response *http.Response, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = errors.New(response.Status)
	}
	return body, err
}

func expect(client *http.Client, url, wanted string) error {
	body, err := read(client.Get(url))
	if err == nil && !strings.Contains(string(body), wanted) {
		err = fmt.Errorf("no %q in %q", wanted, body)
	}
	return err
}

func size(client *http.Client, url string, wanted int) error {
	body, err := read(client.Get(url))
	if err == nil && len(body) != wanted {
		err = fmt.Errorf("%d bytes of %s, not %d", len(body), url, wanted)
	}
	return err
}

func same(client *http.Client, url string) error {
	body, err := read(client.Get(url))
	if err == nil && !bytes.Equal(body, pattern(largeBytes)) {
		err = fmt.Errorf("%d other bytes of %s", len(body), url)
	}
	return err
}

func page() error {
	client, end := client(nil)
	defer end()
	return expect(client, at+"/page", "a page over HTTP/3.0")
}

// download has small requests beside a large one.
func download() error {
	client, end := client(nil)
	defer end()
	large := make(chan error, 1)
	go func() { large <- same(client, at+"/large") }()
	for {
		if err := size(client, at+"/600.html", smallBytes); err != nil {
			return err
		}
		select {
		case err := <-large:
			return err
		default:
		}
	}
}

func upload() error {
	client, end := client(nil)
	defer end()
	for _, before := range []string{"", "/passed"} {
		url := at + before + "/put/quic-go"
		put, err := http.NewRequest("PUT", url, bytes.NewReader(pattern(largeBytes)))
		if err != nil {
			return err
		}
		if _, err := read(client.Do(put)); err != nil {
			return err
		}
		if err := same(client, url); err != nil {
			return err
		}
	}
	return nil
}

func ranges() error {
	client, end := client(nil)
	defer end()
	whole := pattern(largeBytes)
	for text, wanted := range map[string][]byte{
		"0-0":          whole[:1],
		"70000-199999": whole[70000:200000],
		"-100":         whole[len(whole)-100:],
	} {
		get, err := http.NewRequest("GET", at+"/large", nil)
		if err != nil {
			return err
		}
		get.Header.Set("Range", "bytes="+text)
		body, err := read(client.Do(get))
		if err != nil {
			return err
		}
		if !bytes.Equal(body, wanted) {
			return fmt.Errorf("%d other bytes of %s", len(body), text)
		}
	}
	return nil
}

// atOnce does a work in many goroutines.
func atOnce(work func() error) error {
	var all sync.WaitGroup
	results := make(chan error, parallelMax)
	for range parallelMax {
		all.Add(1)
		go func() {
			defer all.Done()
			results <- work()
		}()
	}
	all.Wait()
	close(results)
	for err := range results {
		if err != nil {
			return err
		}
	}
	return nil
}

func parallel() error {
	client, end := client(nil)
	defer end()
	return atOnce(func() error {
		for range rounds {
			if err := size(client, at+"/middle", middleBytes); err != nil {
				return err
			}
		}
		return nil
	})
}

// cancel ends downloads when something of them has come; the connection stays.
func cancel() error {
	client, end := client(nil)
	defer end()
	for range cancels {
		ctx, stop := context.WithCancel(context.Background())
		get, err := http.NewRequestWithContext(ctx, "GET", at+"/large", nil)
		if err != nil {
			stop()
			return err
		}
		response, err := client.Do(get)
		if err == nil {
			_, err = response.Body.Read(make([]byte, 1))
			response.Body.Close()
		}
		stop()
		if err != nil {
			return err
		}
	}
	return size(client, at+"/600.html", smallBytes)
}

// certificate is refused without one, and known by its own.
func certificate() error {
	stranger, end := client(nil)
	defer end()
	err := expect(stranger, known+"/facts", "")
	if err == nil || !strings.Contains(err.Error(), "400") {
		return fmt.Errorf("without a certificate: %v", err)
	}
	file := func(name string) string { return filepath.Join(keys, name) }
	pair, err := tls.LoadX509KeyPair(file("client.pem"), file("client.key"))
	if err != nil {
		return err
	}
	member, leave := client(&tls.Config{Certificates: []tls.Certificate{pair}})
	defer leave()
	return expect(member, known+"/facts", "verify=SUCCESS CN=client")
}

// again asks on a second connection that resumes the session of the first one.
func again(method, wanted string) error {
	cache := tls.NewLRUClientSessionCache(4)
	first, end := client(&tls.Config{ClientSessionCache: cache})
	defer end()
	if err := expect(first, at+"/facts", "reused=."); err != nil {
		return err
	}
	second, leave := client(&tls.Config{ClientSessionCache: cache})
	defer leave()
	get, err := http.NewRequest(method, at+"/facts", nil)
	if err != nil {
		return err
	}
	body, err := read(second.Do(get))
	if err == nil && !strings.Contains(string(body), wanted) {
		err = fmt.Errorf("no %q in %q", wanted, body)
	}
	return err
}

func resumed() error { return again("GET", "reused=r") }

func early() error { return again(http3.MethodGet0RTT, "[early=1 reused=r]") }

func pattern(size int) []byte {
	block := make([]byte, patternSize)
	for i := range block {
		block[i] = byte(i)
	}
	return bytes.Repeat(block, size/patternSize+1)[:size]
}
