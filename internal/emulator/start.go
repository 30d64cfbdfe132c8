package emulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Options are the settings of [Start]. The zero value of a field means its default.
type Options struct {
	// Binary is the path of the emulator; by default that of the function [Binary].
	Binary string
	// StartTimeout bounds one try to start, until the emulator answers. Default 10 s.
	StartTimeout time.Duration
	// StopTimeout is how long Stop waits after SIGTERM before it kills, and after that for the end. Default 3 s.
	StopTimeout time.Duration
}

// startTries is how many ports are tried: another program may take a port between the choice and the start.
const startTries = 5

// Start starts an emulator on a free port of 127.0.0.1 and returns when it answers. The process belongs to the caller,
// not to ctx, which bounds the start only. The error is [ErrNotInstalled] when there is no binary.
func Start(ctx context.Context, optFns ...func(*Options)) (*Emulator, error) {
	opts := Options{StartTimeout: 10 * time.Second, StopTimeout: 3 * time.Second}
	for _, fn := range optFns {
		fn(&opts)
	}
	if opts.Binary == "" {
		path, err := Binary()
		if err != nil {
			return nil, err
		}
		opts.Binary = path
	}
	var failures []error
	for range startTries {
		port, err := freePort(ctx)
		if err != nil {
			return nil, fmt.Errorf("emulator: no free port: %w", err)
		}
		e, err := startOn(ctx, port, opts)
		if err == nil {
			return e, nil
		}
		failures = append(failures, err)
		if ctx.Err() != nil || !errors.Is(err, errEnded) {
			break
		}
	}
	return nil, fmt.Errorf("emulator: %s did not start: %w", opts.Binary, errors.Join(failures...))
}

// startOn makes one try. The emulator's own line that it listens on the port must come before anything is asked:
// an answer alone could be that of another program which took the port first.
func startOn(ctx context.Context, port int, opts Options) (*Emulator, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, opts.StartTimeout,
		fmt.Errorf("no answer within %v", opts.StartTimeout))
	defer cancel()

	endpoint := "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	proc, err := startProcess(opts, port, "listening on "+endpoint+"\n")
	if err != nil {
		return nil, err
	}
	if err := waitReady(ctx, proc, endpoint); err != nil {
		return nil, errors.Join(err, proc.abandon())
	}
	return &Emulator{endpoint: endpoint, streams: endpoint, proc: proc}, nil
}

func waitReady(ctx context.Context, proc *process, endpoint string) error {
	select {
	case <-proc.output.seen:
	case <-proc.done:
		return proc.ended()
	case <-ctx.Done():
		return fmt.Errorf("port is not served: %w: %s", context.Cause(ctx), proc.output)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for {
		err := ask(ctx, client, endpoint)
		if err == nil {
			return nil
		}
		select {
		case <-retry.C:
		case <-proc.done:
			return proc.ended()
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w (last: %w)", endpoint, context.Cause(ctx), err)
		}
	}
}

func ask(ctx context.Context, client *http.Client, endpoint string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
