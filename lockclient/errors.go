package lockclient

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lockstream/lockstream/internal/lockitem"
)

// The errors that callers tell apart with errors.Is. Each comes wrapped in an *Error
// that names operation, lock, table and Region.
var (
	// ErrHeld: another lease holds the lock. errors.As finds a *HeldError with the holder.
	ErrHeld = errors.New("lockclient: lock is held")
	// ErrLost: the lease ended without its holder releasing it. errors.As finds a
	// *LostError with the reason.
	ErrLost = errors.New("lockclient: lease lost")
	// ErrReleased: the lease was released before; nothing was sent.
	ErrReleased = errors.New("lockclient: lease already released")
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("lockclient: client is closed")
	// ErrPaused: an operator paused the lock; nobody may acquire it. The text has the reason.
	ErrPaused = errors.New("lockclient: lock is paused")
	// ErrChanged: the lock is not in the state any more that the caller was shown. Nothing was
	// done to it.
	ErrChanged = errors.New("lockclient: lock has changed since it was looked at")
	// ErrNotALock: the key holds an ordinary item. It was not touched.
	ErrNotALock = errors.New("lockclient: item is not a lock")
	// ErrMalformed: the item is a lock with an attribute of a wrong type or form; the text
	// names it. A held one was not touched. A free one may have been acquired before its
	// answer showed what is wrong; it was then freed again.
	ErrMalformed = errors.New("lockclient: lock item is malformed")
	// ErrInvalidName: empty, not UTF-8, or too long for a key. Nothing was sent.
	ErrInvalidName = errors.New("lockclient: invalid lock name")
	// ErrInvalidOption: an option is out of its range or contradicts another. Nothing was sent.
	ErrInvalidOption = errors.New("lockclient: invalid option")
	// ErrStillRunning: RunAsLeader returned although the work has not, because the grace
	// time after its context's end had passed. The lock is renewed no more and runs out by
	// itself, unless the work returns before, which frees it.
	ErrStillRunning = errors.New("lockclient: the leader's work did not return within the grace time")
	// ErrNoTable: the table does not exist in this Region and account.
	ErrNoTable = errors.New("lockclient: no such table")
	// ErrSchema: the table's key schema is another than the client's.
	ErrSchema = errors.New("lockclient: table has another key schema")
)

// Error says which operation on which lock of which table failed. Err has the cause.
type Error struct {
	Op     string // "acquire", "renew", "release", "ensure table" …
	Lock   string // "" where the operation is not about one lock
	Table  string
	Region string // "" where the client passed to New does not tell
	Err    error
}

// ensureTable is the one operation whose name says "table" already.
const ensureTable = "ensure table"

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("lockclient: " + e.Op)
	if e.Lock != "" {
		fmt.Fprintf(&b, " %q", e.Lock)
	}
	if e.Op == ensureTable {
		fmt.Fprintf(&b, " %q", e.Table)
	} else {
		fmt.Fprintf(&b, " in table %q", e.Table)
	}
	if e.Region != "" {
		fmt.Fprintf(&b, " (%s)", e.Region)
	}
	b.WriteString(": " + strings.TrimPrefix(e.Err.Error(), "lockclient: "))
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// HeldError is what is known of the holder when an acquire gives up. It is ErrHeld.
type HeldError struct {
	Name   string
	Holder string    // owner name, unique to the holder's lease; "" where not known
	Label  string    // what the holder calls itself; "" where not known
	Since  time.Time // when it acquired the lock by the server's clock; zero where not known
	Token  int64     // its fencing token; 0 where not known
	Waited time.Duration
	Cause  error // what ended the wait: the context's error, ErrWaitElapsed, or nil for TryAcquire
}

// ErrWaitElapsed says that AcquireOptions.Wait passed before the lock was free. It is the Cause
// of a HeldError and never the context's error.
var ErrWaitElapsed = errors.New("lockclient: wait elapsed")

func (e *HeldError) Error() string {
	var b strings.Builder
	b.WriteString("lock is held")
	if e.Label != "" {
		fmt.Fprintf(&b, " by %s", e.Label)
	}
	if !e.Since.IsZero() {
		fmt.Fprintf(&b, " since %s", e.Since.UTC().Format(time.RFC3339))
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, "; gave up after %s: %s", e.Waited.Round(time.Millisecond), strings.TrimPrefix(e.Cause.Error(), "lockclient: "))
	}
	return b.String()
}

// Unwrap makes the error ErrHeld and its cause.
func (e *HeldError) Unwrap() []error {
	if e.Cause == nil {
		return []error{ErrHeld}
	}
	return []error{ErrHeld, e.Cause}
}

// Reason says why a lease was lost.
type Reason string

// The reasons of a LostError.
const (
	TakenOver Reason = "taken over" // another lease has the lock
	Expired   Reason = "expired"    // no renewal succeeded within the trust window
	Deleted   Reason = "deleted"    // the item is gone
	Reaped    Reason = "reaped"     // freed from outside: as dead, or by ForceRelease with Now
	Revoked   Reason = "revoked"    // an operator asked the holder to stop
	Clock     Reason = "clock"      // the wall clock jumped forward past the window
	Closed    Reason = "closed"     // the client was closed
)

// LostError says how a lease ended without a release. It is ErrLost, and for the reason
// Closed also ErrClosed.
type LostError struct {
	Name   string
	Token  int64
	Reason Reason
	By     string // who has the lock now, its label or owner; "" where not known
	Last   error  // the last failure of a renewal; nil where there was none
}

func (e *LostError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "lease of %q with token %d lost: %s", e.Name, e.Token, e.Reason)
	if e.By != "" {
		fmt.Fprintf(&b, " by %s", e.By)
	}
	if e.Last != nil {
		fmt.Fprintf(&b, "; last renewal: %s", strings.TrimPrefix(e.Last.Error(), "lockclient: "))
	}
	return b.String()
}

// Unwrap makes the error ErrLost, and its last renewal's error.
func (e *LostError) Unwrap() []error {
	errs := []error{ErrLost}
	if e.Reason == Closed {
		errs = append(errs, ErrClosed)
	}
	if e.Last != nil {
		errs = append(errs, e.Last)
	}
	return errs
}

// wrap gives err its context; an *Error stays as it is.
func (c *Client) wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if _, already := err.(*Error); already {
		return err
	}
	return &Error{Op: op, Lock: name, Table: c.table, Region: c.region, Err: err}
}

// publicItemError turns the item package's errors into this package's.
func publicItemError(err error) error {
	var typeErr *lockitem.TypeError
	switch {
	case errors.Is(err, lockitem.ErrNotALock):
		return ErrNotALock
	case errors.As(err, &typeErr):
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	case errors.Is(err, lockitem.ErrInvalidName):
		return fmt.Errorf("%w: %s", ErrInvalidName, strings.TrimPrefix(err.Error(), lockitem.ErrInvalidName.Error()+": "))
	}
	return err
}
