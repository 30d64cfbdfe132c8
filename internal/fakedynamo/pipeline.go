package fakedynamo

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"
)

// Errors of the transport, not of the service.
var (
	errReset     = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	errTruncated = io.ErrUnexpectedEOF
)

// result is what a request came to.
type result struct {
	out      any   // the SDK's output, nil with err
	err      error // *failure, or an error of the transport or the context
	truncate bool  // the answer's body is to be cut
}

// serve passes a request through its fault and applies it.
func (s *Server) serve(ctx context.Context, op operation, r *Request) result {
	r.Number = s.arrivals.Add(1)
	s.describe(r)
	entry := s.log.arrive(r)
	f := s.fault(ctx, r)
	res := s.pass(ctx, op, r, f)
	s.log.finish(entry, outcome(res.err))
	return res
}

// pass takes a request through the stages that [Fault] describes.
func (s *Server) pass(ctx context.Context, op operation, r *Request, f Fault) result {
	if r.refused != nil {
		op.apply = func(*Server, any) (any, error) { return nil, r.refused }
	}
	latency := time.Duration(s.latency.Load())
	if err := s.wait(ctx, f.Hold, f.DelayRequest+latency/2); err != nil {
		return result{err: err}
	}
	if stop, err := s.refuse(ctx, op, r, f); stop {
		return result{err: err}
	}
	out, err := op.apply(s, r.Input)
	if waitErr := s.wait(ctx, f.HoldResponse, f.DelayResponse+latency-latency/2); waitErr != nil {
		return result{err: waitErr}
	}
	switch {
	case f.DropResponse, f.AfterApply && f.Reset:
		return result{err: s.lost(ctx, f.Reset)}
	case f.AfterApply && f.Error != nil:
		return result{err: faultError(f.Error)}
	}
	return result{out: out, err: err, truncate: f.TruncateBody}
}

// refuse carries out the faults that keep a request from being applied.
func (s *Server) refuse(ctx context.Context, op operation, r *Request, f Fault) (stop bool, err error) {
	if f.ApplyLate > 0 {
		if !s.applyLate(op, r.Input, f.ApplyLate) {
			return true, errReset
		}
		return true, s.lost(ctx, f.Reset)
	}
	if f.DropRequest || f.Reset && !f.AfterApply && !f.DropResponse {
		return true, s.lost(ctx, f.Reset)
	}
	if f.TransactionConflict {
		if err := conflict(r.Input); err != nil {
			return true, err
		}
	}
	if f.Error != nil && !f.AfterApply {
		return true, faultError(f.Error)
	}
	return false, nil
}

// lost is the end of a request whose caller gets no answer.
func (s *Server) lost(ctx context.Context, reset bool) error {
	if reset {
		return errReset
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.done:
		return errReset
	}
}

// applyLate applies a request after a delay, on a goroutine that Close waits
// for. It reports false on a closed server, and for an input that cannot be
// sent.
func (s *Server) applyLate(op operation, in any, d time.Duration) bool {
	// The caller may use its input again once it has given up.
	body, err := encodeJSON(in)
	if err != nil {
		return false
	}
	own := op.newInput()
	if err := decodeInput(body, own); err != nil {
		return false
	}
	s.lifeMu.Lock()
	defer s.lifeMu.Unlock()
	if s.closed {
		return false
	}
	s.late.Go(func() {
		<-time.After(d)
		// Nobody is left who could be told about the outcome.
		_, _ = op.apply(s, own)
	})
	return true
}

// wait waits for hold and then for d.
func (s *Server) wait(ctx context.Context, hold <-chan struct{}, d time.Duration) error {
	select {
	case <-s.done:
		return errReset
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.done:
			return errReset
		}
	}
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.done:
		return errReset
	}
}

// outcome names the end of a request in the log.
func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	var f *failure
	switch {
	case errors.As(err, &f):
		return f.code
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "canceled"
	}
	return "transport error"
}
