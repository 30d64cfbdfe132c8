package lockclient

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"
)

// WorkPanic is what RunAsLeader and Elector.Run panic with when the work has panicked.
// The work has a goroutine of its own; its panic goes on in the caller's once the work's
// deferred calls have run and the lock was given back.
type WorkPanic struct {
	Value any    // what the work panicked with
	Stack []byte // of the work's goroutine
}

func (p *WorkPanic) Error() string {
	return fmt.Sprintf("lockclient: the leader's work panicked: %v\n\n%s", p.Value, p.Stack)
}

// Unwrap returns the value that the work panicked with where it is an error.
func (p *WorkPanic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// outcome is how the work's goroutine ended.
type outcome struct {
	err      error
	panicked *WorkPanic
	exited   bool // by runtime.Goexit
}

// startWork runs fn in a goroutine of its own, whose end it tells.
func startWork(ctx context.Context, fn func(ctx context.Context) error) <-chan outcome {
	returned := make(chan outcome, 1)
	go func() {
		o := outcome{exited: true}
		defer func() {
			if r := recover(); r != nil {
				o = outcome{panicked: &WorkPanic{Value: r, Stack: debug.Stack()}}
			}
			returned <- o
		}()
		o.err = fn(ctx)
		o.exited = false
	}()
	return returned
}

// goOn ends the calling goroutine as the work's was ended: by its panic or by
// runtime.Goexit. It does nothing for work that returned.
func (o outcome) goOn() {
	switch {
	case o.panicked != nil:
		panic(o.panicked)
	case o.exited:
		runtime.Goexit()
	}
}

// term is one time of leading: work under a lease.
type term struct {
	lease *Lease
	grace time.Duration
	// stop asks the work to return. It ends with ctx, the caller's, at the latest.
	ctx, stop context.Context
	// over is called once, when the work has returned and the lock was given back: before
	// run returns, unless run gives up waiting for the work.
	over func()
}

// termEnd is how a term ended.
type termEnd struct {
	outcome
	cause    error         // why the work was told to return; nil where it returned by itself
	took     time.Duration // from the start of the work to the end of the release
	lost     error         // why the lease ended before it was given back; nil where it held
	released error         // what giving it back failed with
	hung     bool          // the work has not returned
}

// run runs fn under the lease until fn returns. When stop has ended, fn has the grace time
// to return while the lease renews itself; then the lease is left to run out, because the
// lock must not be freed under the work. Once ctx has ended too, run does not wait longer.
func (t *term) run(fn func(ctx context.Context) error) termEnd {
	l := t.lease
	work, cancel := context.WithCancelCause(context.WithValue(t.stop, leaseKey{}, l))
	defer cancel(nil)
	defer context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })()
	begun := time.Now()
	returned := startWork(work, fn)
	o, ok := t.await(returned)
	if !ok {
		go func() { // as long as the work runs
			o := <-returned
			_ = l.Release(context.WithoutCancel(t.ctx)) // ErrLost where it has run out
			t.over()
			o.goOn()
		}()
		return termEnd{hung: true}
	}
	end := termEnd{outcome: o, lost: l.Err(), cause: context.Cause(work)}
	// The work may have released it.
	if err := l.Release(t.ctx); !errors.Is(err, ErrReleased) {
		end.released = err
	}
	t.over()
	end.took = time.Since(begun)
	return end
}

// await waits for the work. It reports false when it gave up.
func (t *term) await(returned <-chan outcome) (outcome, bool) {
	select {
	case o := <-returned:
		return o, true
	case <-t.stop.Done():
	}
	timer := time.NewTimer(t.grace)
	defer timer.Stop()
	select {
	case o := <-returned:
		return o, true
	case <-timer.C:
	}
	t.lease.stopRenews()
	select {
	case o := <-returned:
		return o, true
	case <-t.ctx.Done():
		return outcome{}, false
	}
}

// stopped is the error of a term that ctx ended.
func (e termEnd) stopped(ctx context.Context) error {
	cause := withContextError(ctx, context.Cause(ctx))
	if e.hung {
		return errors.Join(cause, ErrStillRunning)
	}
	return errors.Join(cause, e.err, e.released)
}

// wasLost says that leadership ended by a loss, so that it is time to contend again.
func (e termEnd) wasLost() bool {
	return errors.Is(e.lost, ErrLost) && !errors.Is(e.lost, ErrClosed)
}
