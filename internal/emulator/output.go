package emulator

import (
	"bytes"
	"strings"
	"sync"
)

// outputLimit is how much of the emulator's first output is kept: enough for the line that it listens, or for the
// reason why it cannot.
const outputLimit = 8 << 10

// output collects what the emulator prints, for error texts, and closes seen when the awaited text has come.
type output struct {
	want string
	seen chan struct{}

	mu    sync.Mutex
	text  []byte
	found bool
}

func newOutput(want string) *output {
	return &output{want: want, seen: make(chan struct{})}
}

// Write keeps the first bytes and drops the rest; it never fails, so that the emulator never blocks on a full pipe.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p[:min(len(p), outputLimit-len(o.text))]...)
	if !o.found && bytes.Contains(o.text, []byte(o.want)) {
		o.found = true
		close(o.seen)
	}
	return len(p), nil
}

// String is the output on one line, for error texts.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if text := strings.TrimSpace(string(o.text)); text != "" {
		return "it printed: " + strings.Join(strings.Fields(text), " ")
	}
	return "it printed nothing"
}
