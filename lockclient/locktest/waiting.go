package locktest

import (
	"time"

	"github.com/lockstream/lockstream/lockclient"
)

// patience bounds a wait for what a test expects, in the table's time.
const patience = 30 * time.Second

// TurnedAway returns when a contender has found the lock called name held and begun to
// wait. With clients it returns when a contender of each of them has. Of several contenders
// in one client only the first looks at the table; the others wait behind it.
//
// It waits for the event, at most half a minute of the table's time, then fails the test.
// Call it from the test's own goroutine. It forgets who was turned away when the lock
// becomes free; a contender that gave up counts until then.
func (t *Table) TurnedAway(name string, clients ...*lockclient.Client) {
	t.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		t.mu.Lock()
		waiters, changed := t.waiters[name], t.changed
		all := len(waiters) > 0
		for _, c := range clients {
			if _, ok := waiters[c]; !ok {
				all = false
			}
		}
		t.mu.Unlock()
		if all {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			t.t.Fatalf("locktest: no contender was turned away from %q within %s", name, patience)
		}
	}
}

// watchWaits adds the table's interest in waits to a client's observer. The client is
// there before its first wait.
func (t *Table) watchWaits(o lockclient.Observer, prefix string, c **lockclient.Client) lockclient.Observer {
	waiting, woke := o.Waiting, o.Woke
	o.Waiting = func(name string) {
		t.tell(prefix + name) // so that a release before this wait cannot be told of after it
		t.mu.Lock()
		if t.waiters[prefix+name] == nil {
			t.waiters[prefix+name] = map[*lockclient.Client]struct{}{}
		}
		t.waiters[prefix+name][*c] = struct{}{}
		close(t.changed)
		t.changed = make(chan struct{})
		t.mu.Unlock()
		if waiting != nil {
			waiting(name)
		}
	}
	o.Woke = func(name string, by lockclient.Wake) {
		t.mu.Lock()
		delete(t.waiters[prefix+name], *c)
		t.mu.Unlock()
		if woke != nil {
			woke(name, by)
		}
	}
	return o
}
