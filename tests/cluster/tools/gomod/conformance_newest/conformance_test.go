// Package conformance is the official Gateway API conformance suite as one program; its flags choose what is run.
package conformance

import (
	"testing"

	"sigs.k8s.io/gateway-api/conformance"
)

func TestConformance(t *testing.T) {
	conformance.RunConformance(t)
}
