package lockclient

import (
	"context"
	"iter"
	"time"
)

// Leader is who leads. The zero value is nobody.
type Leader struct {
	ID    string    // owner name, unique to one time of leading
	Label string    // what the leader calls itself
	Since time.Time // when it became the leader, by the server's clock; zero where not known
	Token int64     // its fencing token
	Self  bool      // it is this client
}

// Leader returns who leads: what is known, while this elector leads or contends and has
// the present holder's name, otherwise what one consistent read shows. A contender with a
// notifier knows as soon as the notifier does; without one its knowledge is as old as
// its last poll. A leader that died is named until another leads.
//
// The error is ErrNoLeader when nobody holds the lock, otherwise that of Inspect.
func (e *Elector) Leader(ctx context.Context) (Leader, error) {
	l, err := e.whoLeads(ctx, 0, false)
	if err == nil && l == (Leader{}) {
		err = e.c.wrap("lead", e.name, ErrNoLeader)
	}
	return l, err
}

// whoLeads returns the leader, the zero value for nobody. What is known counts only from
// the token least on, and not at all when mustRead.
func (e *Elector) whoLeads(ctx context.Context, least int64, mustRead bool) (Leader, error) {
	if l, ok := e.known(); ok && (l.Self || !mustRead && l.Token >= least) {
		return l, nil
	}
	info, err := e.c.Inspect(ctx, e.name)
	if err != nil || info.Free {
		return Leader{}, err
	}
	return Leader{ID: info.Holder, Label: info.Label, Since: info.Since, Token: info.Token}, nil
}

// known returns the leader as this client knows it without a look at the table.
func (e *Elector) known() (Leader, bool) {
	e.mu.Lock()
	contending := e.contending
	e.mu.Unlock()
	c := e.c
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.locks[e.name]
	if s == nil {
		return Leader{}, false
	}
	if h := s.holder; h != nil {
		return Leader{ID: h.owner, Label: h.label, Since: h.since, Token: h.token, Self: true}, h.Valid()
	}
	v := s.view
	ok := contending && v.kind == viewHeld && v.owner != "" && !v.dead(time.Now())
	return Leader{ID: v.owner, Label: v.label, Since: v.since, Token: v.version.Token}, ok
}

// Leaders returns the sequence of leaders: who leads now, then each change, until ctx ends
// or the loop is left. Nobody (the zero value) is told of when a leader has given the lock
// back, not when it died: it is then followed by its successor.
//
// The sequence coalesces. It runs in the loop's own goroutine, and what changes while the
// loop's body is busy is told of once, as the latest state. With a notifier it sends
// nothing while the leader renews, and one read at most for a change; without one, or while
// it is not ready, it looks every PollInterval, and reads only where the elector does not
// contend itself. Outages of the table are waited out; a lasting error is the last element.
func (e *Elector) Leaders(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		f := &following{e: e}
		if n := e.c.opt.Notifier; n != nil {
			f.watch = n.Watch(e.name)
			defer f.watch.Stop()
			f.checkReady(ctx)
		}
		for {
			err := f.next(ctx)
			if ctx.Err() != nil {
				return
			}
			if !yield(f.now, err) || err != nil {
				return
			}
		}
	}
}
