package lockclient

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// party is some electors for one lock, each with a client of its own, and who led.
type party struct {
	w       *world
	all     []*Elector
	cancel  context.CancelFunc
	running sync.WaitGroup
	terms   []atomic.Int64
	active  atomic.Int64
}

func (w *world) party(n int, clientOpt func(*Options), optFns ...func(*ElectorOptions)) *party {
	ctx, cancel := context.WithCancel(w.ctx)
	p := &party{w: w, cancel: cancel, terms: make([]atomic.Int64, n)}
	for i := range n {
		e := w.elector(w.client(clientOpt), optFns...)
		p.all = append(p.all, e)
		p.running.Go(func() {
			_ = e.Run(ctx, func(ctx context.Context) error {
				p.terms[i].Add(1)
				p.active.Add(1)
				defer p.active.Add(-1)
				<-ctx.Done()
				return nil
			})
		})
	}
	return p
}

// leader waits until one of them leads, and returns its place.
func (p *party) leader() int {
	for range 100_000 {
		for i, e := range p.all {
			if e.IsLeader() {
				return i
			}
		}
		time.Sleep(time.Millisecond)
	}
	p.w.t.Fatal("nobody leads")
	return 0
}

func (p *party) changes() (n int64) {
	for i := range p.terms {
		n += p.terms[i].Load()
	}
	return n
}

func (p *party) stop() {
	p.cancel()
	p.running.Wait()
}

// Cases: D11
//
// A step-down moves leadership once, and it stays there.
func TestStepDownMovesLeadershipOnce(t *testing.T) {
	bubble(t, func(w *world) {
		for name, opt := range map[string]func(*Options){"notifier": w.watching, "polling": func(*Options) {}} {
			p := w.party(3, opt)
			for range 5 {
				first := p.leader()
				time.Sleep(20 * time.Second)
				before := p.changes()
				if err := p.all[first].StepDown(w.ctx); err != nil {
					t.Fatal(err)
				}
				gone := time.Now()
				if p.all[first].IsLeader() || p.active.Load() > 1 {
					t.Errorf("%s: leads after its step-down", name)
				}
				next := p.leader()
				if took := time.Since(gone); took > 1300*time.Millisecond {
					t.Errorf("%s: another leads after %v", name, took)
				}
				time.Sleep(time.Minute)
				if n := p.changes() - before; n != 1 || p.leader() == first || p.leader() != next {
					t.Errorf("%s: %d changes in a minute after the step-down of %d; %d leads", name, n, first, p.leader())
				}
			}
			p.stop()
			w.release(w.acquire(w.client(), "leader"))
		}
	})
}

// Without standing back the one that steps down is the first to take the lock again: the
// check above can fail.
func TestStepDownTwinWithoutStandingBack(t *testing.T) {
	bubble(t, func(w *world) {
		p := w.party(3, func(*Options) {}, func(o *ElectorOptions) { o.StandBack = time.Nanosecond })
		came := 0
		for range 10 {
			first := p.leader()
			time.Sleep(5 * time.Second)
			if err := p.all[first].StepDown(w.ctx); err != nil {
				t.Fatal(err)
			}
			if p.leader() == first {
				came++
			}
		}
		if came == 0 {
			t.Error("never came back")
		}
		p.stop()
	})
}

// Where nobody else is there, leadership comes back after the time for standing back.
func TestStepDownAloneLeadsAgain(t *testing.T) {
	bubble(t, func(w *world) {
		p := w.party(1, w.watching, func(o *ElectorOptions) { o.StandBack = 7 * time.Second })
		p.leader()
		if err := p.all[0].StepDown(w.ctx); err != nil {
			t.Fatal(err)
		}
		gone := time.Now()
		p.leader()
		if took := time.Since(gone); took < 7*time.Second || took > 7100*time.Millisecond {
			t.Errorf("leads again after %v", took)
		}
		p.stop()
	})
}

// Cases: O3
//
// A step-down waits for work that ignores it for the grace time, then leaves the lock to
// run out, and never runs the work a second time beside it.
func TestStepDownOfWorkThatIgnoresIt(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.elector(w.client(), func(o *ElectorOptions) { o.Grace = 20 * time.Second })
		ctx, cancel := context.WithCancel(w.ctx)
		hung := make(chan struct{})
		var terms atomic.Int64
		done := electing(ctx, a, func(context.Context) error {
			terms.Add(1)
			<-hung
			return nil
		})
		time.Sleep(time.Second)
		next := w.goAcquire(w.ctx, w.client(w.watching), "leader")
		short, stop := context.WithTimeout(w.ctx, time.Second)
		start := time.Now()
		wantErr(t, a.StepDown(short), context.DeadlineExceeded)
		stop()
		time.Sleep(19*time.Second - time.Millisecond)
		if !a.IsLeader() || next.ended() {
			t.Error("lost in the grace time")
		}
		next.mustHold(t)
		if took := next.at.Sub(start); took < 26*time.Second || took > 31*time.Second {
			t.Errorf("another leads after %v", took)
		}
		time.Sleep(time.Minute)
		if terms.Load() != 1 || len(done) != 0 {
			t.Errorf("%d terms, returned %v", terms.Load(), len(done) != 0)
		}
		if it := w.item("leader"); it.Released || it.Owner != next.lease.owner {
			t.Error("the hung work's end touched the new hold")
		}
		cancel()
		wantErr(t, <-done, context.Canceled, ErrStillRunning)
		close(hung)
	})
}

// The work may step down by itself.
func TestStepDownFromTheWork(t *testing.T) {
	bubble(t, func(w *world) {
		var e *Elector
		ends := make(chan TermEnd, 1)
		e = w.elector(w.client(), func(o *ElectorOptions) { o.OnTermEnd = func(end TermEnd) { ends <- end } })
		ctx, cancel := context.WithCancel(w.ctx)
		done := electing(ctx, e, func(ctx context.Context) error {
			if err := e.StepDown(ctx); err != nil {
				t.Error(err)
			}
			wantErr(t, context.Cause(ctx), ErrSteppedDown)
			return nil
		})
		end := <-ends
		wantErr(t, end.Cause, ErrSteppedDown)
		time.Sleep(5 * time.Second)
		if !w.item("leader").Released || len(ends) != 0 {
			t.Error("leads again at once")
		}
		cancel()
		wantErr(t, <-done, context.Canceled)
	})
}

// The figures: 1.2 leases after a kill, the poll interval and 100 ms after a clean stop.
func TestElectorHandOverTimes(t *testing.T) {
	bubble(t, func(w *world) {
		for name, opt := range map[string]func(*Options){"notifier": w.watching, "polling": func(*Options) {}} {
			p := w.party(3, opt)
			killed := p.leader()
			time.Sleep(25 * time.Second)
			crash(p.all[killed].c)
			at := time.Now()
			for p.all[killed].IsLeader() {
				time.Sleep(time.Millisecond)
			}
			p.leader()
			if took := time.Since(at); took > 12*time.Second {
				t.Errorf("%s: another leads %v after a kill", name, took)
			}
			clean := p.leader()
			time.Sleep(25 * time.Second)
			if err := p.all[clean].StepDown(w.ctx); err != nil {
				t.Fatal(err)
			}
			at = time.Now()
			p.leader()
			if took := time.Since(at); took > 1300*time.Millisecond || name == "notifier" && took > 100*time.Millisecond {
				t.Errorf("%s: another leads %v after a clean stop", name, took)
			}
			p.stop()
		}
	})
}
