//go:build tools

// Package pebble pins the versions of the programs that `cargo xtask acme` builds, with all that
// they need.
package pebble

import (
	_ "github.com/letsencrypt/pebble/v2/cmd/pebble"
	_ "github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv"
)
