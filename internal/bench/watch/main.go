// Command watch measures the stream watcher on the local emulator, by itself and behind a
// proxy with the service's limits, and prints its figures beside their bars. It takes
// about two minutes. Its last line is RESULT with the figures in JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "watch:", err)
		os.Exit(1)
	}
}

// errBars: the figures were taken, and some are worse than they may be.
var errBars = errors.New("a figure is beyond its bar")

// result is what the last line says.
type result struct {
	OK         bool         `json:"ok"`
	Missed     []string     `json:"missed,omitempty"` // bars
	Wake       []wake       `json:"wake"`
	Waiting    waiting      `json:"waiting"`
	Throughput []throughput `json:"throughput"`
	Seconds    float64      `json:"seconds"`
}

// bar notes a figure that is beyond its bar.
func (r *result) bar(ok bool, format string, args ...any) {
	if !ok {
		r.Missed = append(r.Missed, fmt.Sprintf(format, args...))
	}
}

func run(ctx context.Context) error {
	began := time.Now()
	var r result
	for _, phase := range []func(context.Context, *result) error{measureThroughput, measureWakes, measureWaiting} {
		if err := phase(ctx, &r); err != nil {
			return err
		}
	}
	r.OK, r.Seconds = len(r.Missed) == 0, time.Since(began).Seconds()
	for _, m := range r.Missed {
		fmt.Println("beyond its bar:", m)
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	fmt.Printf("RESULT %s\n", text)
	if !r.OK {
		return errBars
	}
	return nil
}
