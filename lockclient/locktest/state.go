package locktest

import (
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/lockitem"
)

// Status says whether somebody holds a lock.
type Status string

// The states of a lock.
const (
	Absent   Status = "absent"   // there is no item
	Released Status = "released" // free, and its last token is remembered
	Held     Status = "held"     // also when its holder is dead
)

// State is a lock as it is in the table. A released lock still shows its last holder.
type State struct {
	Status Status
	Holder string        // owner name, unique to the hold
	Label  string        // what the holder calls itself
	Token  int64         // fencing token
	Lease  time.Duration // how long a contender waits for a dead holder
	Data   []byte        // payload; nil for none
}

// State reads the lock called name behind everybody's back.
func (t *Table) State(name string) State {
	t.t.Helper()
	it, err := t.item(name)
	switch {
	case errors.Is(err, errAbsent):
		return State{Status: Absent}
	case err != nil:
		t.t.Errorf("locktest: %v", err)
		return State{}
	}
	s := State{Status: Held, Holder: it.Owner, Label: it.Label, Token: it.Token, Lease: it.Lease, Data: it.Data}
	if it.Released {
		s.Status = Released
	}
	return s
}

var errAbsent = errors.New("absent")

// item reads a lock; the error is errAbsent when there is no item.
func (t *Table) item(key string) (*lockitem.Item, error) {
	m := t.server.Item(t.opt.TableName, t.layout.Key(key))
	if m == nil {
		return nil, errAbsent
	}
	it, err := lockitem.Decode(m)
	if err != nil {
		return nil, fmt.Errorf("lock %q: %w", key, err)
	}
	return &it, nil
}

// change makes one write by the lock's present state, as another process would, and tells
// the watches. build gets the state, nil for an absent lock, and returns what to write, or
// an error for a state that does not allow it; it is asked again when somebody changed the lock in between.
func (t *Table) change(key string, build func(it *lockitem.Item) (lockitem.Expr, error)) error {
	if err := t.layout.CheckName(key); err != nil {
		return err
	}
	for {
		it, err := t.item(key)
		if err != nil && !errors.Is(err, errAbsent) {
			return err
		}
		e, err := build(it)
		if err != nil {
			return fmt.Errorf("lock %q: %w", key, err)
		}
		_, err = t.server.API().UpdateItem(t.ctx, e.UpdateInput(t.opt.TableName, t.layout.Key(key)))
		var refused *types.ConditionalCheckFailedException
		if errors.As(err, &refused) {
			continue
		}
		t.tell(key)
		return err
	}
}
