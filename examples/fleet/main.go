package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// The statuses of the program.
const (
	statusFailed      = 1
	statusUsage       = 2
	statusInterrupted = 130
)

func main() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == workerArgument:
		os.Exit(workerMain(os.Stdin, os.Stdout))
	case len(os.Args) > 1:
		fmt.Fprintln(os.Stderr, "usage: fleet\n\nIt takes no arguments; AWS_ENDPOINT_URL_DYNAMODB chooses another endpoint than a local emulator.")
		os.Exit(statusUsage)
	}
	os.Exit(run(os.Stdout))
}

// run plays the whole demonstration and returns the status.
func run(out *os.File) int {
	if err := supported(); err != nil {
		return fail(err)
	}
	ctx, interrupt := context.WithCancelCause(context.Background())
	defer interrupt(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		if _, ok := <-signals; ok {
			interrupt(errInterrupted)
		}
	}()
	limit := timeLimit()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the run was not over after %v", limit))
	defer cancel()

	began := time.Now()
	v := newView(out)
	f := newFleet(v)
	events, polling, err := f.play(ctx)
	v.close()
	survivors := f.survivors()
	if err != nil {
		for _, pid := range survivors {
			err = errors.Join(err, fmt.Errorf("process %d was started and has not ended", pid))
		}
		if len(f.pids) > 0 && len(survivors) == 0 {
			fmt.Fprintf(os.Stderr, "fleet: all %d processes that were started have ended\n", len(f.pids))
		}
		return fail(err)
	}
	r, broken := judge(events, polling, len(f.pids), survivors, time.Since(began))
	summary{w: out, paint: newPainter(out)}.print(r, broken, events, polling)
	line, err := json.Marshal(r)
	if err != nil {
		return fail(err)
	}
	fmt.Fprintf(out, "RESULT %s\n", line)
	if len(broken) > 0 {
		return statusFailed
	}
	return 0
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "fleet:", err)
	if errors.Is(err, errInterrupted) {
		return statusInterrupted
	}
	return statusFailed
}

// timeLimit is longer where tables have to be made by a service.
func timeLimit() time.Duration {
	if os.Getenv("AWS_ENDPOINT_URL_DYNAMODB") != "" || os.Getenv("AWS_ENDPOINT_URL") != "" {
		return remoteRunLimit
	}
	return runLimit
}
