package locktest_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
)

// exampleT stands for the t of a test, which examples do not have.
type exampleT struct {
	testing.TB
	cleanups []func()
}

func newExampleT() *exampleT { return &exampleT{} }

func (t *exampleT) end() {
	for _, fn := range slices.Backward(t.cleanups) {
		fn()
	}
}

func (t *exampleT) Helper()                           {}
func (t *exampleT) Cleanup(fn func())                 { t.cleanups = append(t.cleanups, fn) }
func (t *exampleT) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func (t *exampleT) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	runtime.Goexit()
}
