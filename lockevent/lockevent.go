// Package lockevent is the seam between those who wait for a lock and those who
// know that it changed.
//
// A Notifier is a source of hints. It may be late, repeat itself or be wrong about
// the present: whoever waits still decides by a conditional write to the table. The
// one thing it must never do is stay silent about a gap: when a change may have been
// missed it says so with a Change of kind Resync, and the waiter looks at the table.
//
// The package imports the standard library only; the lock client and every notifier
// import it, and never each other.
package lockevent

import (
	"context"
	"errors"
	"time"
)

// Kind says what a change did to a lock.
type Kind uint8

// The kinds of a change. Resync is not a change of the lock: it says that one may
// have been missed.
const (
	Unknown    Kind = iota
	Acquired        // free or absent before, held now
	Renewed         // same lease, new version
	HandedOver      // passed by its holder to another contender of the same process
	Released        // freed by its holder
	TakenOver       // a new holder without a release in between
	Reaped          // freed from outside because its holder was dead
	Deleted         // the item is gone
	Resync          // an event may have been missed: look at the table once
)

var kindNames = [...]string{
	Unknown: "unknown", Acquired: "acquired", Renewed: "renewed", HandedOver: "handed over",
	Released: "released", TakenOver: "taken over", Reaped: "reaped", Deleted: "deleted", Resync: "resync",
}

// String returns the kind in lower-case words, "unknown" for a value outside the list.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[Unknown]
}

// Change is what a notifier knows of one state of a lock.
type Change struct {
	Name     string        // lock name, without a table's key prefix
	Kind     Kind          // what happened
	RVN      string        // record version number after the change, "" where unknown or deleted
	Token    int64         // fencing token after the change (before it, when deleted); 0 where unknown
	Lease    time.Duration // the lease as written; 0 where unknown
	Held     bool          // somebody holds the lock after the change
	Expired  bool          // of Deleted: by the table's time to live, not by a client
	Sequence string        // position in its source, "" where it has none
	SeenAt   time.Time     // when this process received it, with its monotonic reading
}

// Notifier tells waiters of changes to locks by name. It is safe for concurrent use.
type Notifier interface {
	// Watch starts to collect changes of name. It is cheap, sends nothing itself and
	// starts the source on demand. The caller must Stop the watch.
	Watch(name string) Watch

	// Ready waits until no change of w's name after this moment can be missed without
	// a Resync, and returns nil. It is a level and not an edge: while the source stays
	// live it returns at once. It returns the context's error when ctx ends first, an
	// error that is ErrDegraded when the source cannot deliver at present, and ErrClosed
	// after the notifier was closed. The watch stays usable after every error: a Resync
	// follows when the source is live (again).
	Ready(ctx context.Context, w Watch) error
}

// Watch is one waiter's mailbox for one name. C and Latest belong to one goroutine.
type Watch interface {
	// C receives when Latest has something new. Its capacity is one and it coalesces;
	// the sender never blocks.
	C() <-chan struct{}

	// Latest takes the mailbox's content: the newest change, or a Resync when one came
	// since the last call, which outranks any change. It returns false when empty.
	Latest() (Change, bool)

	// Stop ends the watch. It is safe to call twice.
	Stop()
}

// Observations is what a Notifier may have besides: a memory of the locks that its source
// has shown lately, whether or not anybody waited for them. A client that finds a version
// in the table that was observed a whole lease ago need not wait to prove its holder dead.
type Observations interface {
	// Observed returns the last version of name that the source has shown, and false
	// where it has shown none, or shown that the item is gone. SeenAt is when this process
	// received that version first; the version may be older, and it may not be the present
	// one. Kind is Unknown. It sends nothing and is safe for concurrent use.
	//
	// Whoever acts on it writes on the condition that the item still has this RVN and
	// token: then it has had them ever since SeenAt, whatever the source has missed.
	Observed(name string) (Change, bool)
}

// The errors of Ready. Both are states of the source and no verdict on a lock.
var (
	// ErrDegraded: the source delivers nothing at present (no stream, no permission,
	// endpoint dead). Waiters poll until a Resync tells that it is live.
	ErrDegraded = errors.New("lockevent: notifier is degraded")
	// ErrClosed: the notifier was closed. Waiters poll.
	ErrClosed = errors.New("lockevent: notifier is closed")
)
