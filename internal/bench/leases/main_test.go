package leases

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
)

var full = flag.Bool("figures", false, "run at full size and print the figures")

// report collects the figures for the RESULT line.
var report = struct {
	mu      sync.Mutex
	figures map[string]any
}{figures: map[string]any{}}

func TestMain(m *testing.M) {
	if os.Getenv(stubEnv) != "" {
		serveStub()
		return
	}
	flag.Parse()
	code := m.Run()
	if *full {
		report.figures["ok"] = code == 0
		line, err := json.Marshal(report.figures)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		fmt.Printf("RESULT %s\n", line)
	}
	os.Exit(code)
}

// figure prints a figure and keeps it for the RESULT line.
func figure(name string, value any, format string, args ...any) {
	report.mu.Lock()
	defer report.mu.Unlock()
	report.figures[name] = value
	if *full {
		fmt.Printf(format+"\n", args...)
	}
}

// size is full at full size, else small.
func size(fullSize, small int) int {
	if *full {
		return fullSize
	}
	return small
}
