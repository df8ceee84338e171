// Package suite keeps Gateway API's conformance suite, and what its tests need, in this module.
package suite

import _ "sigs.k8s.io/gateway-api/conformance"
