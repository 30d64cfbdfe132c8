// Package emulatortest gives tests an emulator. It is apart from package emulator so that testing gets into no binary.
package emulatortest

import (
	"testing"

	"github.com/lockstream/lockstream/internal/emulator"
)

// ForTest opens an emulator for one test and stops it at the test's end. Without an emulator the test fails, with a text that
// says what to do; it is never skipped.
//
// With an endpoint in the environment all tests share that endpoint, so tables need names of their own.
func ForTest(t testing.TB, optFns ...func(*emulator.Options)) *emulator.Emulator {
	t.Helper()
	e, err := emulator.Open(t.Context(), optFns...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	return e
}
