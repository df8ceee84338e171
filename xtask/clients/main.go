// Command clients asks a server what `cargo xtask clients` wants to see, by Go's net/http:
//
//	clients PROTOCOL OPEN KNOWN KEYS
//
// PROTOCOL is 1 or 2, OPEN and KNOWN are ports, the second one wants certificates, and KEYS is the
// folder of the certificates. A line for each cell of the matrix says how it went.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// How long a request may take on a busy machine.
const deadline = 2 * time.Minute

const (
	postBytes   = 300_000
	largeBytes  = 32 << 20
	patternSize = 251
)

func main() {
	protocol, open, known, keys := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	roots := x509.NewCertPool()
	root, err := os.ReadFile(filepath.Join(keys, "root.pem"))
	if err != nil || !roots.AppendCertsFromPEM(root) {
		fmt.Println("page fail: no root:", err)
		return
	}
	client := newClient(protocol, &tls.Config{RootCAs: roots})
	name := map[string]string{"1": "HTTP/1.1", "2": "HTTP/2.0"}[protocol]
	at := "https://localhost:" + open
	tell("page", func() error {
		return expect(client, at+"/page", "a page over "+name)
	})
	tell("post", func() error { return post(client, at+"/post") })
	tell("large", func() error { return download(client, at+"/large") })
	tell("certificate", func() error {
		return present(protocol, roots, keys, "https://localhost:"+known)
	})
	tell("resumed", func() error {
		config := &tls.Config{RootCAs: roots, ClientSessionCache: tls.NewLRUClientSessionCache(4)}
		if err := expect(newClient(protocol, config), at+"/facts", "reused=."); err != nil {
			return err
		}
		return expect(newClient(protocol, config), at+"/facts", "reused=r")
	})
}

func tell(cell string, work func() error) {
	if err := work(); err != nil {
		fmt.Printf("%s fail: %v\n", cell, err)
		return
	}
	fmt.Println(cell, "pass")
}

func newClient(protocol string, config *tls.Config) *http.Client {
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: protocol == "2"}
	if protocol == "1" {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	return &http.Client{Transport: transport, Timeout: deadline}
}

func read(response *http.Response, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return string(body), err
}

func expect(client *http.Client, url, wanted string) error {
	body, err := read(client.Get(url))
	if err == nil && !strings.Contains(body, wanted) {
		err = fmt.Errorf("no %q in %q", wanted, body)
	}
	return err
}

func post(client *http.Client, url string) error {
	sent := pattern(postBytes)
	body, err := read(client.Post(url, "application/octet-stream", bytes.NewReader(sent)))
	if err == nil && body != string(sent) {
		err = fmt.Errorf("%d other bytes came back", len(body))
	}
	return err
}

func download(client *http.Client, url string) error {
	body, err := read(client.Get(url))
	if err == nil && body != string(pattern(largeBytes)) {
		err = fmt.Errorf("%d other bytes came", len(body))
	}
	return err
}

// present is refused without a certificate, and known by its own.
func present(protocol string, roots *x509.CertPool, keys, at string) error {
	err := expect(newClient(protocol, &tls.Config{RootCAs: roots}), at+"/facts", "")
	if err == nil || !strings.Contains(err.Error(), "400") {
		return fmt.Errorf("without a certificate: %v", err)
	}
	file := func(name string) string { return filepath.Join(keys, name) }
	pair, err := tls.LoadX509KeyPair(file("client.pem"), file("client.key"))
	if err != nil {
		return err
	}
	config := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}
	return expect(newClient(protocol, config), at+"/facts", "verify=SUCCESS CN=client")
}

func pattern(size int) []byte {
	bytes := make([]byte, size)
	for at := range bytes {
		bytes[at] = byte(at % patternSize)
	}
	return bytes
}
