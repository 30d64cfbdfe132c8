package locktest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockstream/lockstream/internal/lockitem"
	"github.com/lockstream/lockstream/lockevent"
)

// notifier tells one client of every change in the moment in which it is made. It is always
// live and misses nothing, so it never needs a resync.
type notifier struct {
	t      *Table
	prefix string // between a lock's name and its key
}

// Watch implements lockevent.Notifier.
func (n *notifier) Watch(name string) lockevent.Watch {
	w := &watch{t: n.t, name: name, key: n.prefix + name, c: make(chan struct{}, 1)}
	n.t.mu.Lock()
	defer n.t.mu.Unlock()
	if n.t.watches[w.key] == nil {
		n.t.watches[w.key] = map[*watch]struct{}{}
	}
	n.t.watches[w.key][w] = struct{}{}
	return w
}

// Ready implements lockevent.Notifier.
func (n *notifier) Ready(ctx context.Context, _ lockevent.Watch) error { return ctx.Err() }

// watch is the mailbox of one contender.
type watch struct {
	t         *Table
	name, key string
	c         chan struct{}

	mu     sync.Mutex
	newest lockevent.Change
	full   bool
}

// put replaces the mailbox's content.
func (w *watch) put(ch lockevent.Change) {
	ch.Name = w.name
	w.mu.Lock()
	w.newest, w.full = ch, true
	w.mu.Unlock()
	select {
	case w.c <- struct{}{}:
	default:
	}
}

// C implements lockevent.Watch.
func (w *watch) C() <-chan struct{} { return w.c }

// Latest implements lockevent.Watch.
func (w *watch) Latest() (lockevent.Change, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	full := w.full
	w.full = false
	return w.newest, full
}

// Stop implements lockevent.Watch.
func (w *watch) Stop() {
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	delete(w.t.watches[w.key], w)
	if len(w.t.watches[w.key]) == 0 {
		delete(w.t.watches, w.key)
	}
}

// tell looks at a lock after a request and tells its watches what has changed since the
// last look. Two changes between two looks become one, as in any mailbox.
func (t *Table) tell(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, err := t.item(key) // reads memory only
	before := t.last[key]
	var ch lockevent.Change
	switch {
	case err != nil && !errors.Is(err, errAbsent):
		ch.Kind = lockevent.Unknown // no lock any more, or a broken one: have a look
	case now == nil && before == nil, now != nil && before != nil && now.RVN == before.RVN:
		return
	case now == nil:
		ch = lockevent.Change{Kind: lockevent.Deleted, Token: before.Token}
	default:
		ch = lockevent.Change{
			Kind: lockitem.Classify(before, now), RVN: now.RVN, Token: now.Token,
			Lease: now.Lease, Held: !now.Released,
		}
	}
	if now == nil {
		delete(t.last, key)
	} else {
		t.last[key] = now
	}
	if !ch.Held {
		delete(t.waiters, key) // a free lock turns nobody away
	}
	ch.SeenAt = time.Now()
	for w := range t.watches[key] {
		w.put(ch)
	}
}
