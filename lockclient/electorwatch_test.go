package lockclient

import (
	"context"
	"sync"
	"testing"
	"time"
)

// heardOf collects what a loop over Leaders is told.
type heardOf struct {
	mu   sync.Mutex
	all  []Leader
	errs []error
}

func (h *heardOf) from(ctx context.Context, e *Elector) {
	for l, err := range e.Leaders(ctx) {
		h.mu.Lock()
		if err != nil {
			h.errs = append(h.errs, err)
		} else {
			h.all = append(h.all, l)
		}
		h.mu.Unlock()
	}
}

func (h *heardOf) last() Leader {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.all) == 0 {
		return Leader{}
	}
	return h.all[len(h.all)-1]
}

// The promise to standbys: whoever waits to lead, asks who leads and follows the sequence
// sends nothing while the leader renews.
func TestStandbysSendNothingWhileTheLeaderRenews(t *testing.T) {
	bubble(t, func(w *world) {
		count := func(minutes time.Duration) (reads, refused int) {
			w.server.Requests().Reset()
			for range 10 {
				time.Sleep(minutes * time.Minute / 10)
			}
			for _, r := range w.server.Requests().Log() {
				switch {
				case r.Op == "GetItem":
					reads++
				case r.Outcome != "ok":
					refused++
				}
			}
			return reads, refused
		}
		p := w.party(4, w.watching)
		ctx, cancel := context.WithCancel(w.ctx)
		var loops sync.WaitGroup
		heard := make([]heardOf, len(p.all))
		for i, e := range p.all {
			loops.Go(func() { heard[i].from(ctx, e) })
		}
		first := p.leader()
		time.Sleep(20 * time.Second)
		reads, refused := count(10)
		for i, e := range p.all {
			l, err := e.Leader(w.ctx)
			if err != nil || l != heard[i].last() || l.Self != (i == first) || l.Label == "" || l.Token == 0 || l.Since.IsZero() {
				t.Errorf("elector %d: %+v, %v; heard of %+v", i, l, err, heard[i].last())
			}
		}
		if n := w.requests("GetItem"); reads != 0 || refused != 0 || n != 0 {
			t.Errorf("standbys sent %d reads (%d to say who leads) and %d writes in 10 min", reads, n, refused)
		}
		// The twin: a notifier that loses events without a word costs looks.
		w.events.mute.Store(true)
		if reads, refused := count(10); reads+refused == 0 {
			t.Error("nothing was sent without events: the count proves nothing")
		}
		w.events.mute.Store(false)
		cancel()
		loops.Wait()
		p.stop()
	})
}

// Everybody hears of each change, in its order, with the name of who leads.
func TestLeadersTellsOfEachChange(t *testing.T) {
	bubble(t, func(w *world) {
		for name, opt := range map[string]func(*Options){"notifier": w.watching, "polling": func(*Options) {}} {
			p := w.party(2, opt, func(o *ElectorOptions) { o.Label = name })
			observer := w.elector(w.client(opt)) // does not run
			ctx, cancel := context.WithCancel(w.ctx)
			var loops sync.WaitGroup
			var heard [3]heardOf
			for i, e := range append(p.all, observer) {
				loops.Go(func() { heard[i].from(ctx, e) })
			}
			var led []int64
			for range 4 {
				i := p.leader()
				led = append(led, p.all[i].current().lease.token)
				time.Sleep(15 * time.Second)
				if err := p.all[i].StepDown(w.ctx); err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * time.Second)
			}
			led = append(led, p.all[p.leader()].current().lease.token)
			p.stop()
			time.Sleep(5 * time.Second)
			cancel()
			loops.Wait()
			for i := range heard {
				var tokens []int64
				for _, l := range heard[i].all {
					switch {
					case l.ID == "":
						continue
					case l.Label != name || l.Since.IsZero():
						t.Errorf("%s, loop %d: %+v", name, i, l)
					}
					tokens = append(tokens, l.Token)
				}
				if len(tokens) != len(led) {
					t.Errorf("%s, loop %d heard of %v, and %v led: %+v", name, i, tokens, led, heard[i].all)
					continue
				}
				for n := range led {
					if tokens[n] != led[n] {
						t.Errorf("%s, loop %d heard of %v, and %v led", name, i, tokens, led)
					}
				}
				if heard[i].last() != (Leader{}) || len(heard[i].errs) != 0 {
					t.Errorf("%s, loop %d: at last %+v, errors %v", name, i, heard[i].last(), heard[i].errs)
				}
			}
		}
	})
}

// A loop that is slow misses what is over, and not what is.
func TestLeadersCoalesces(t *testing.T) {
	bubble(t, func(w *world) {
		observer := w.elector(w.client(w.watching))
		a := w.client()
		l := w.acquire(a, "leader")
		var heard []Leader
		ctx, cancel := context.WithCancel(w.ctx)
		defer cancel()
		for now, err := range observer.Leaders(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			heard = append(heard, now)
			if len(heard) > 1 {
				break
			}
			for range 5 { // the body is busy
				w.release(l)
				l = w.acquire(a, "leader")
			}
		}
		if len(heard) != 2 || heard[1].Token != l.token || heard[1].ID != l.owner {
			t.Errorf("heard of %+v, and %d leads", heard, l.token)
		}
		if w.events.watched() != 0 {
			t.Error("a loop that was left still watches")
		}
	})
}

// Who does not contend reads once; a leader and a standby know.
func TestLeaderCostsAtMostOneRead(t *testing.T) {
	bubble(t, func(w *world) {
		observer := w.elector(w.client(w.watching))
		reads := func(e *Elector, want int) Leader {
			t.Helper()
			before := w.requests("GetItem")
			l, err := e.Leader(w.ctx)
			if err != nil {
				t.Error(err)
			}
			if n := w.requests("GetItem") - before; n != want {
				t.Errorf("%d reads, want %d", n, want)
			}
			return l
		}
		_, err := observer.Leader(w.ctx)
		wantErr(t, err, ErrNoLeader)
		p := w.party(2, w.watching)
		first := p.leader()
		time.Sleep(30 * time.Second)
		mine := reads(p.all[first], 0)
		theirs := reads(p.all[1-first], 0)
		read := reads(observer, 1)
		if !mine.Self || theirs.Self || mine.ID != theirs.ID || read != theirs || mine.Token != read.Token || !mine.Since.Equal(read.Since) {
			t.Errorf("%+v, %+v, %+v", mine, theirs, read)
		}
		// A leader that took over is known by its token only: one read, and then its name.
		third := w.party(1, w.watching)
		time.Sleep(time.Second)
		if err := p.all[first].StepDown(w.ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		for _, e := range append(p.all, third.all...) {
			if l, err := e.Leader(w.ctx); err != nil || l.Token <= mine.Token || l.Label == "" {
				t.Errorf("%+v, %v", l, err)
			}
			reads(e, 0)
		}
		p.stop()
		third.stop()
		_, err = observer.Leader(w.ctx)
		wantErr(t, err, ErrNoLeader)
	})
}
