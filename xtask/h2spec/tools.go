//go:build tools

// Package h2spec pins the version of h2spec that `cargo xtask h2spec` builds, with all that it needs.
package h2spec

import _ "github.com/summerwind/h2spec/cmd/h2spec"
