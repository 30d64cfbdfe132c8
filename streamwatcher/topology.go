package streamwatcher

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// phase is where a shard is in its life, as the reader sees it.
type phase uint8

const (
	phaseWaiting phase = iota // its parent is not finished
	phaseReading
	phaseDrained // read to its end; its children are searched
	phaseLost    // disappeared while it was read; its children are searched
	phaseDone    // nothing more to do; remembered as long as it is listed
)

// shard is one shard of the stream. It belongs to the reader's run goroutine, but for
// the fields that say otherwise.
type shard struct {
	id, parent string
	phase      phase
	baseline   bool // was there when the arming began
	first      bool // a leaf of the arming: live needs its first answer
	late       bool // was missing before: everybody must look when it is read
	armed      bool
	missing    int // complete lists in a row that did not have it

	began  time.Time // reading, or searching for children
	search search
	trial  int    // how often reading began
	resume string // position to begin from, of a shard that was lost and found again
	stop   context.CancelFunc

	lastGood atomic.Int64 // time of the last good poll since the reader's birth; written by the worker
	interval atomic.Int64 // planned delay before the next poll; written by the worker
	troubled atomic.Bool  // the worker must report its next good poll
	nudge    chan struct{}
}

// search is the progress of looking for a shard's children.
type search struct {
	tries int
	due   time.Time
}

// topology is the reader's picture of the shards and their descent. It holds no clock
// and makes no calls.
type topology struct {
	shards map[string]*shard
	order  []*shard // the same, in the order in which they were found
}

func newTopology() *topology { return &topology{shards: make(map[string]*shard)} }

// begin takes in the first list: the leaves are read, all others are history. Whether a
// shard is open is never told from its sequence numbers, only from having children.
func (t *topology) begin(found []types.Shard) {
	parents := make(map[string]bool, len(found))
	for _, f := range found {
		s := t.add(f)
		s.baseline = true
		if s.parent != "" {
			parents[s.parent] = true
		}
	}
	leaves := 0
	for _, s := range t.order {
		s.first = !parents[s.id]
		if s.first {
			leaves++
		} else {
			s.phase = phaseDone
		}
	}
	if leaves > 0 {
		return
	}
	for _, s := range t.order { // parents in a circle: believe none of them
		s.first, s.parent, s.phase = true, "", phaseWaiting
	}
}

// merge takes in a later answer and returns the shards that were new. A new shard is
// late unless it comes as the child of a shard that is being read or whose children are
// being searched.
func (t *topology) merge(found []types.Shard) (fresh []*shard) {
	for _, f := range found {
		if known := t.shards[aws.ToString(f.ShardId)]; known != nil {
			if p := aws.ToString(f.ParentShardId); known.parent == "" && p != known.id {
				known.parent = p
			}
			known.missing = 0
			continue
		}
		if s := t.add(f); s != nil {
			fresh = append(fresh, s)
		}
	}
	for _, s := range fresh {
		parent := t.shards[s.parent]
		s.late = parent == nil || parent.phase == phaseDone
	}
	t.markHistory(fresh)
	return fresh
}

func (t *topology) add(f types.Shard) *shard {
	id := aws.ToString(f.ShardId)
	if s := t.shards[id]; s != nil {
		return s
	}
	s := &shard{id: id, parent: aws.ToString(f.ParentShardId), nudge: make(chan struct{}, 1)}
	if s.parent == id {
		s.parent = ""
	}
	t.shards[id] = s
	t.order = append(t.order, s)
	return s
}

// markHistory finishes new shards that turn out to be ancestors of those that were there
// when the arming began: whatever they hold is from before.
func (t *topology) markHistory(fresh []*shard) {
	for changed := true; changed; {
		changed = false
		for _, s := range fresh {
			if s.phase == phaseWaiting && t.hasBaselineChild(s.id) {
				s.phase, s.baseline, s.late = phaseDone, true, false
				changed = true
			}
		}
	}
}

func (t *topology) hasBaselineChild(id string) bool {
	for _, s := range t.order {
		if s.parent == id && s.baseline {
			return true
		}
	}
	return false
}

func (t *topology) hasChild(id string) bool {
	for _, s := range t.order {
		if s.parent == id {
			return true
		}
	}
	return false
}

// startable returns the waiting shards that may be read now: a child after its parent
// is read to the end, lost, or not known.
func (t *topology) startable() (ready []*shard) {
	for _, s := range t.order {
		if s.phase != phaseWaiting {
			continue
		}
		p := t.shards[s.parent]
		if p == nil || p.phase >= phaseDrained || t.circular(s) {
			ready = append(ready, s)
		}
	}
	return ready
}

// circular reports whether s is its own ancestor.
func (t *topology) circular(s *shard) bool {
	p := s
	for range t.shards {
		if p = t.shards[p.parent]; p == nil {
			return false
		}
		if p == s {
			return true
		}
	}
	return false
}

// orphans returns the finished shards whose children are still searched.
func (t *topology) orphans() (out []*shard) {
	for _, s := range t.order {
		if s.phase == phaseDrained || s.phase == phaseLost {
			out = append(out, s)
		}
	}
	return out
}

// How many complete lists in a row must lack a shard before it is forgotten: lists can
// be inconsistent for a while after a split.
const missingLists = 5

// forget drops finished shards that are no longer listed, given the ids of a complete
// list, and returns the orphans that are not listed either.
func (t *topology) forget(listed map[string]bool) (gone []*shard) {
	for _, s := range t.order {
		if listed[s.id] {
			s.missing = 0
			continue
		}
		s.missing++
		switch {
		case s.phase == phaseDone && s.missing >= missingLists:
			delete(t.shards, s.id)
		case s.phase == phaseDrained || s.phase == phaseLost:
			gone = append(gone, s)
		}
	}
	t.order = slices.DeleteFunc(t.order, func(s *shard) bool { return t.shards[s.id] != s })
	return gone
}

// count returns how many shards are in a phase.
func (t *topology) count(p phase) (n int) {
	for _, s := range t.order {
		if s.phase == p {
			n++
		}
	}
	return n
}
