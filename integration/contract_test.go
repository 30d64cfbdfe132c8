package integration

import (
	"testing"

	"github.com/lockstream/lockstream/internal/emulator/emulatortest"
	"github.com/lockstream/lockstream/internal/fakedynamo/contract"
)

// TestEmulatorKeepsTheContract holds the emulator to the suite that the in-memory fake
// passes too, so that what is shown on one is true on the other.
func TestEmulatorKeepsTheContract(t *testing.T) {
	e := emulatortest.ForTest(t)
	db, err := e.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	streams, err := e.StreamsClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	contract.Run(t, db, streams, contract.Dynoxide)
}
