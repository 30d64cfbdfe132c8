package streamwatcher

import (
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/lockstream/lockstream/internal/lockattr"
	"github.com/lockstream/lockstream/internal/lockitem"
	"github.com/lockstream/lockstream/lockevent"
)

// What is remembered of a lock is bounded in number and in size: by default at most some
// 40 MB if every name and version is as long as it may be, 20 MB with usual ones.
const (
	observedNames  = 65536
	longestName    = 255 // bytes; locks with longer names are not remembered
	longestVersion = 64
	longestNumber  = 40
)

// observation is the last version of a lock. Its texts are decoded when somebody asks:
// most are never asked for.
type observation struct {
	name, rvn, token, lease string
	released                bool
	sequence                string
	seenAt                  time.Time // when this version was received first
	newer, older            int32     // neighbours in the order of use
}

// observations remembers the locks that changed last, whoever waits for them. The zero
// value remembers nothing until it has a limit.
type observations struct {
	limit int

	mu    sync.Mutex
	index map[string]int32
	slots []observation // slot 0 is the ring's anchor: its older is the newest
	free  []int32
}

// note takes in the record of a change of name. For a renewal of a lock that is known it
// allocates nothing.
func (o *observations) note(rec *types.Record, name string, at time.Time) {
	if o.limit <= 0 || len(name) > longestName {
		return
	}
	seen, ok := glance(rec)
	o.mu.Lock()
	defer o.mu.Unlock()
	i, known := o.index[name]
	switch {
	case known && older(seen.sequence, o.slots[i].sequence):
		return // a page that was read again: what is known is newer
	case !ok:
		if known {
			o.drop(i)
		}
		return
	case !known:
		i = o.take(name)
	case o.slots[i].rvn == seen.rvn && o.slots[i].token == seen.token:
		at = o.slots[i].seenAt // nothing makes a known version young again
		o.unlink(i)
	default:
		o.unlink(i)
	}
	s := &o.slots[i]
	s.rvn, s.token, s.lease, s.released = seen.rvn, seen.token, seen.lease, seen.released
	s.sequence, s.seenAt = seen.sequence, at
	o.link(i)
}

// glance reads what is remembered from a record's new image, in place. It returns false
// for an item that is gone or is not a lock as far as can be told.
func glance(rec *types.Record) (seen observation, ok bool) {
	d := rec.Dynamodb
	seen.sequence = aws.ToString(d.SequenceNumber)
	rvn, ok := d.NewImage[lockattr.RecordVersionNumber].(*types.AttributeValueMemberS)
	if !ok || rvn.Value == "" || len(rvn.Value) > longestVersion {
		return seen, false
	}
	seen.rvn = rvn.Value
	if n, ok := d.NewImage[lockattr.FencingToken].(*types.AttributeValueMemberN); ok && len(n.Value) <= longestNumber {
		seen.token = n.Value
	}
	if s, ok := d.NewImage[lockattr.LeaseDuration].(*types.AttributeValueMemberS); ok && len(s.Value) <= longestNumber {
		seen.lease = s.Value
	}
	_, seen.released = d.NewImage[lockattr.IsReleased]
	return seen, true
}

// get returns what is remembered of name.
func (o *observations) get(name string) (lockevent.Change, bool) {
	o.mu.Lock()
	i, ok := o.index[name]
	var s observation
	if ok {
		s = o.slots[i]
	}
	o.mu.Unlock()
	if !ok {
		return lockevent.Change{}, false
	}
	c := lockevent.Change{Name: name, RVN: s.rvn, Held: !s.released, Sequence: s.sequence, SeenAt: s.seenAt}
	var err error
	if s.token != "" {
		if c.Token, err = strconv.ParseInt(s.token, 10, 64); err != nil || c.Token < 0 || c.Token > lockitem.MaxToken {
			return lockevent.Change{}, false
		}
	}
	if c.Held || s.lease != "" {
		if c.Lease, err = lockitem.ParseLease(s.lease); err != nil {
			return lockevent.Change{}, false
		}
	}
	return c, true
}

// forget drops everything.
func (o *observations) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.index, o.slots, o.free = nil, nil, nil
}

// take returns a slot for a name that is not known, if need be that of the name that
// changed longest ago. The caller holds the mutex, here and below.
func (o *observations) take(name string) int32 {
	if o.index == nil {
		o.index, o.slots = make(map[string]int32), make([]observation, 1)
	}
	if len(o.index) >= o.limit {
		o.drop(o.slots[0].newer)
	}
	var i int32
	if n := len(o.free); n > 0 {
		i, o.free = o.free[n-1], o.free[:n-1]
	} else {
		i = int32(len(o.slots))
		o.slots = append(o.slots, observation{})
	}
	o.slots[i].name = name
	o.index[name] = i
	return i
}

func (o *observations) drop(i int32) {
	o.unlink(i)
	delete(o.index, o.slots[i].name)
	o.slots[i] = observation{}
	o.free = append(o.free, i)
}

// link makes a slot the newest. The anchor's older is the newest slot, its newer the
// oldest.
func (o *observations) link(i int32) {
	newest := o.slots[0].older
	o.slots[i].newer, o.slots[i].older = 0, newest
	o.slots[newest].newer = i
	o.slots[0].older = i
}

func (o *observations) unlink(i int32) {
	newer, older := o.slots[i].newer, o.slots[i].older
	o.slots[newer].older, o.slots[older].newer = older, newer
}
