package lockclient

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// The errors of an Elector, besides those of the client.
var (
	// ErrRunning: the elector runs already; one runs once at a time.
	ErrRunning = errors.New("lockclient: elector runs already")
	// ErrNotLeading: there is nothing to step down from.
	ErrNotLeading = errors.New("lockclient: elector does not lead")
	// ErrNoLeader: nobody holds the lock at present.
	ErrNoLeader = errors.New("lockclient: nobody leads")
	// ErrSteppedDown is the cause with which the work's context ends when its elector
	// steps down.
	ErrSteppedDown = errors.New("lockclient: elector steps down")
)

// firstIdle bounds the first pause after work that returned at once.
const firstIdle = 100 * time.Millisecond

// ElectorOptions configure an Elector. Wait must be zero: an elector has no end of its own.
type ElectorOptions struct {
	LeaderOptions

	// StandBack is how long the elector leaves the lock to others after StepDown, unless
	// another is seen to lead before. Where nobody else takes it, it then leads again.
	// 0: the lease.
	StandBack time.Duration

	// OnTermEnd is called in Run's goroutine after each time of leading, once the work has
	// returned and the lock was given back or lost. nil: not called.
	OnTermEnd func(TermEnd)
}

// TermEnd is one time of leading that is over.
type TermEnd struct {
	Token int64         // of the term's lease
	Took  time.Duration // from the acquire to the end of the release
	Err   error         // what the work returned

	// Cause is why the work was told to return: ErrSteppedDown, a *LostError, or the
	// cause with which Run's context ended. nil: it returned by itself.
	Cause error
}

// Elector leads as long as it can: whenever it does not lead, it contends. It is safe for
// concurrent use.
//
// Every Elector may be asked who leads, whether it runs or not.
type Elector struct {
	c    *Client
	name string
	opt  ElectorOptions

	mu         sync.Mutex // guards what follows; never held over I/O
	running    bool
	contending bool          // Acquire is under way: the client's view of the lock is kept fresh
	term       *electorTerm  // nil while no work runs
	changed    chan struct{} // closed and replaced when term changes
}

// electorTerm is the term under way, until its work has returned and the lock was given
// back.
type electorTerm struct {
	lease    *Lease
	stepDown context.CancelCauseFunc
	over     chan struct{}
	endedAt  time.Time // when the lease ended, zero before; Elector.mu
}

// NewElector returns an elector for the lock called name. It sends nothing and starts
// nothing. The error is ErrInvalidName or ErrInvalidOption.
func NewElector(client *Client, name string, optFns ...func(*ElectorOptions)) (*Elector, error) {
	if client == nil {
		return nil, fmt.Errorf("%w: no client", ErrInvalidOption)
	}
	e := &Elector{c: client, name: name, changed: make(chan struct{})}
	for _, set := range optFns {
		set(&e.opt)
	}
	if err := client.layout.CheckName(name); err != nil {
		return nil, client.wrap("lead", name, publicItemError(err))
	}
	acquire, err := client.acquireOptions([]func(*AcquireOptions){e.acquireOptions})
	errs := []error{err}
	if e.opt.Grace < 0 || e.opt.StandBack < 0 {
		errs = append(errs, fmt.Errorf("%w: the Grace of %s or the StandBack of %s is negative", ErrInvalidOption, e.opt.Grace, e.opt.StandBack))
	}
	if e.opt.Wait != 0 {
		errs = append(errs, fmt.Errorf("%w: an elector waits until its context ends; the Wait of %s is not for it", ErrInvalidOption, e.opt.Wait))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, client.wrap("lead", name, err)
	}
	e.opt.AcquireOptions = acquire
	if e.opt.StandBack == 0 {
		e.opt.StandBack = acquire.LeaseDuration
	}
	return e, nil
}

func (e *Elector) acquireOptions(a *AcquireOptions) { *a = e.opt.AcquireOptions }

// Run contends for the lock and runs fn, in a goroutine of its own, each time that it
// leads, until ctx ends. fn's context carries the lease (see LeaseFromContext) and ends
// with leadership. fn never runs twice at a time.
//
//   - When the lease is lost, Run waits for fn to return and contends again.
//   - When fn returns by itself, with or without an error, the lock is freed and Run
//     contends again after a pause: full jitter below a bound that doubles from 100 ms to
//     the lease, and is reset by a term that lasted longer than a lease.
//   - When ctx ends, or the elector steps down, fn's context ends, fn may take Grace to
//     return while the lease renews itself, and only then is the lock freed. The lock of
//     work that takes longer is left to run out and never freed under it.
//
// Run returns when ctx has ended: with ctx's error, joined with fn's, or with
// ErrStillRunning where fn did not return within the grace time. It returns Acquire's
// error when the lock cannot be acquired for a lasting reason; a paused lock is waited for
// and, once the elector has led, every outage of the table. The error is ErrRunning while
// another Run of this elector is under way, and ErrStillRunning while the work of an
// earlier one is. When fn panics, the lock is freed and the panic goes on in Run's
// goroutine as a *WorkPanic.
func (e *Elector) Run(ctx context.Context, fn func(ctx context.Context) error) error {
	if err := e.begin(); err != nil {
		return e.c.wrap("lead", e.name, err)
	}
	defer e.end()
	led := false
	for idle := 0; ; {
		l, err := e.campaign(ctx, led)
		if err != nil {
			return err
		}
		led = true
		end := e.lead(ctx, l, fn)
		end.goOn()
		switch {
		case ctx.Err() != nil:
			return e.c.wrap("lead", e.name, end.stopped(ctx))
		case errors.Is(end.lost, ErrClosed), errors.Is(end.released, ErrClosed):
			return e.c.wrap("lead", e.name, errors.Join(ErrClosed, end.err))
		case errors.Is(end.cause, ErrSteppedDown):
			idle = 0
			e.standBack(ctx, l.token)
		case end.wasLost():
			idle = 0
		default:
			if end.took >= l.lease {
				idle = 0
			}
			sleep(ctx, rand.N(min(firstIdle<<min(idle, 20), l.lease)))
			idle++
		}
	}
}

func (e *Elector) begin() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.running:
		return ErrRunning
	case e.term != nil:
		return ErrStillRunning
	}
	e.running = true
	return nil
}

func (e *Elector) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = false
}

// campaign contends until it leads or there is no point in going on.
func (e *Elector) campaign(ctx context.Context, led bool) (*Lease, error) {
	for fails := 0; ; fails++ {
		e.contend(true)
		l, err := e.c.Acquire(ctx, e.name, e.acquireOptions)
		e.contend(false)
		switch {
		case err == nil:
			return l, nil
		case ctx.Err() != nil:
			return nil, err
		case errors.Is(err, ErrPaused):
			lease := e.opt.LeaseDuration
			sleep(ctx, lease-rand.N(lease/5))
		case !led || !isOutage(err):
			return nil, err
		default:
			// Longer than Acquire's own pauses: it has tried a few times, and cleans up.
			sleep(ctx, rand.N(min(firstIdle<<min(fails, 20), e.opt.LeaseDuration/2)))
		}
	}
}

func (e *Elector) contend(on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.contending = on
}

// lead runs fn for one term.
func (e *Elector) lead(ctx context.Context, l *Lease, fn func(ctx context.Context) error) termEnd {
	stop, stepDown := context.WithCancelCause(ctx)
	defer stepDown(nil)
	et := &electorTerm{lease: l, stepDown: stepDown, over: make(chan struct{})}
	context.AfterFunc(l.ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		et.endedAt = time.Now()
	})
	e.set(et)
	t := &term{lease: l, grace: e.opt.graceOf(l), ctx: ctx, stop: stop, over: func() {
		e.set(nil)
		close(et.over)
	}}
	end := t.run(fn)
	if end.hung {
		return end
	}
	told := TermEnd{Token: l.token, Took: end.took, Err: end.err, Cause: end.cause}
	if end.panicked != nil {
		told.Err = end.panicked
	}
	if told.Err != nil && told.Cause == nil {
		e.c.opt.Logger.Warn("the leader's work failed", "lock", e.name, "token", l.token, "error", told.Err)
	}
	if e.opt.OnTermEnd != nil {
		e.opt.OnTermEnd(told)
	}
	return end
}

// set makes et the term under way and tells those who follow.
func (e *Elector) set(et *electorTerm) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.term = et
	close(e.changed)
	e.changed = make(chan struct{})
}

// changes returns a channel that is closed when the term under way changes.
func (e *Elector) changes() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.changed
}

// standBack leaves the lock to others after the term with this token, until one of them
// leads or the time for it has passed.
func (e *Elector) standBack(ctx context.Context, token int64) {
	ctx, cancel := context.WithTimeout(ctx, e.opt.StandBack)
	defer cancel()
	for l, err := range e.Leaders(ctx) {
		if err != nil || l.Token > token {
			return
		}
	}
}
