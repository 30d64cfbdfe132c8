package locktest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/lockstream/lockstream/internal/lockitem"
	"github.com/lockstream/lockstream/lockclient"
)

// HoldOptions configure a Foreign's hold. The zero value of each field is its default.
type HoldOptions struct {
	Lease time.Duration // lockclient.DefaultLease
	Label string        // "locktest"
	Data  []byte        // payload to write; nil keeps what the item has
}

// Foreign is a lock's holder in another process. It renews its lease as a client does, until
// it releases, dies or loses the lock.
type Foreign struct {
	t     *Table
	key   string
	owner string
	token int64
	opt   HoldOptions

	stop context.CancelFunc
	done chan struct{} // closed when no renewal comes any more
}

// Hold lets another process hold the lock called name, which must be free. Call it from the
// test's own goroutine: it ends the test otherwise.
func (t *Table) Hold(name string, optFns ...func(*HoldOptions)) *Foreign {
	t.t.Helper()
	return t.foreign(name, optFns, func(it *lockitem.Item, g lockitem.Grant) (lockitem.Expr, error) {
		switch {
		case it == nil:
			return lockitem.AcquireUnknown(t.layout, g), nil
		case it.Released:
			return lockitem.AcquireReleased(it.Version(), g), nil
		}
		return lockitem.Expr{}, fmt.Errorf("held by %s; TakeOver takes it away", it.Label)
	})
}

// TakeOver lets another process take the lock called name from whoever holds it, as after a
// whole lease without a renewal. The former holder learns of it with its next renewal.
// Call it from the test's own goroutine: it ends the test when nobody holds the lock.
func (t *Table) TakeOver(name string, optFns ...func(*HoldOptions)) *Foreign {
	t.t.Helper()
	return t.foreign(name, optFns, func(it *lockitem.Item, g lockitem.Grant) (lockitem.Expr, error) {
		if it == nil || it.Released {
			return lockitem.Expr{}, errNotHeld
		}
		return lockitem.Takeover(it.Version(), g), nil
	})
}

var (
	errNotHeld  = errors.New("nobody holds it")
	errNotTheir = errors.New("this holder has lost it")
)

// foreign makes a holder with the write that build chooses.
func (t *Table) foreign(key string, optFns []func(*HoldOptions), build func(*lockitem.Item, lockitem.Grant) (lockitem.Expr, error)) *Foreign {
	t.t.Helper()
	o := HoldOptions{Lease: lockclient.DefaultLease, Label: "locktest"}
	for _, fn := range optFns {
		fn(&o)
	}
	f := &Foreign{t: t, key: key, owner: lockitem.Owner("locktest", rand.Text()), opt: o, done: make(chan struct{})}
	err := t.change(key, func(it *lockitem.Item) (lockitem.Expr, error) {
		now := t.server.Now()
		f.token = now.UnixMicro()
		if it != nil {
			f.token = max(f.token, it.Token+1)
		}
		return build(it, lockitem.Grant{
			Owner: f.owner, RVN: rand.Text(), Token: f.token, Label: o.Label, Lease: o.Lease,
			Data: o.Data, SetData: o.Data != nil, AcquiredAt: now, LeaseUntil: now.Add(o.Lease),
		})
	})
	if err != nil {
		t.t.Fatalf("locktest: %v", err)
	}
	var ctx context.Context
	ctx, f.stop = context.WithCancel(t.ctx)
	t.work.Go(func() { f.renew(ctx) })
	return f
}

// renew keeps the lock until ctx ends or it is lost.
func (f *Foreign) renew(ctx context.Context) {
	defer close(f.done)
	for sleep(ctx, f.opt.Lease/3) {
		if f.write(func(mine lockitem.Hold, rvn string) lockitem.Expr {
			return lockitem.Renew(mine, lockitem.Touch{RVN: rvn, Lease: f.opt.Lease, LeaseUntil: f.t.server.Now().Add(f.opt.Lease)})
		}) != nil {
			return
		}
	}
}

// write writes as the holder, whatever version the holder's last write has left.
func (f *Foreign) write(build func(mine lockitem.Hold, rvn string) lockitem.Expr) error {
	return f.t.change(f.key, func(it *lockitem.Item) (lockitem.Expr, error) {
		if it == nil || it.Released || it.Owner != f.owner || it.Token != f.token {
			return lockitem.Expr{}, errNotTheir
		}
		return build(lockitem.Hold{Owner: f.owner, RVN: it.RVN, Token: f.token}, rand.Text()), nil
	})
}

// FencingToken returns the hold's token.
func (f *Foreign) FencingToken() int64 { return f.token }

// Holder returns the hold's owner name, as in State and lockclient.HeldError.
func (f *Foreign) Holder() string { return f.owner }

// Release gives the lock back. It is a test error when it is lost.
func (f *Foreign) Release() {
	f.t.t.Helper()
	f.Die()
	f.must(f.write(func(mine lockitem.Hold, rvn string) lockitem.Expr {
		return lockitem.Release(mine, lockitem.Touch{RVN: rvn})
	}))
}

// Die ends the holder's process without a release: no renewal comes any more. Contenders
// take the lock when they have seen it unchanged for the whole lease; State shows it held
// until then. A second call does nothing.
func (f *Foreign) Die() {
	f.stop()
	<-f.done
}

// Expire is Die a lease ago: the holder is dead and its lease is over, so that a contender
// need not wait for it, in real time too. It shortens the written lease to a millisecond. A
// client that has never seen the lock before watches it for this millisecond: Acquire waits
// for it, TryAcquire does not and succeeds in its next call. It is a test error when the lock
// is lost.
func (f *Foreign) Expire() {
	f.t.t.Helper()
	f.Die()
	f.must(f.write(func(mine lockitem.Hold, rvn string) lockitem.Expr {
		return lockitem.Renew(mine, lockitem.Touch{RVN: rvn, Lease: time.Millisecond, LeaseUntil: f.t.server.Now()})
	}))
}

func (f *Foreign) must(err error) {
	f.t.t.Helper()
	if err != nil {
		f.t.t.Errorf("locktest: %v", err)
	}
}

// Reap frees the lock called name from outside, as the reaper does for a dead holder. A live
// holder learns of it with its next renewal. It is a test error when nobody holds the lock.
func (t *Table) Reap(name string) {
	t.t.Helper()
	err := t.change(name, func(it *lockitem.Item) (lockitem.Expr, error) {
		if it == nil || it.Released {
			return lockitem.Expr{}, errNotHeld
		}
		return lockitem.Reap(it.Version(), lockitem.Touch{RVN: rand.Text()}), nil
	})
	if err != nil {
		t.t.Errorf("locktest: %v", err)
	}
}

// Delete removes the item of the lock called name, held or not, as by hand or by a time to
// live. An absent item is no error.
func (t *Table) Delete(name string) {
	t.t.Helper()
	if err := t.server.DeleteRaw(t.opt.TableName, t.layout.Key(name)); err != nil {
		t.t.Errorf("locktest: %v", err)
	}
	t.tell(name)
}
