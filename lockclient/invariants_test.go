package lockclient

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxLines is how much of a timeline is kept: its end tells what happened.
const maxLines = 250

// note adds a line to the timeline.
func (s *schedule) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteLocked(format, args...)
}

func (s *schedule) noteLocked(format string, args ...any) {
	if s.broken != "" {
		return
	}
	s.lines = append(s.lines, fmt.Sprintf("%10.3f ", time.Since(s.began).Seconds())+fmt.Sprintf(format, args...))
	if len(s.lines) > 2*maxLines {
		s.lines = slices.Delete(s.lines, 0, maxLines)
	}
}

// breaks records the first broken promise and ends the run.
func (s *schedule) breaks(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.breaksLocked(format, args...)
}

func (s *schedule) breaksLocked(format string, args ...any) {
	if s.broken == "" {
		s.noteLocked("BROKEN: "+format, args...)
		s.broken = fmt.Sprintf(format, args...)
		s.end()
	}
}

func (s *schedule) isCalm() bool {
	select {
	case <-s.calm:
		return true
	default:
		return false
	}
}

// got checks a new lease: no other is valid, and its token is the largest so far.
func (s *schedule) got(p *proc, l *Lease) {
	if s.twin.granted != nil && p != nil {
		s.twin.granted(p, l)
	}
	s.mu.Lock()
	s.held++
	id := -1
	if p != nil {
		id = p.id
	}
	s.noteLocked("p%d holds %s/%d", id, l.name, l.token)
	if l.token <= s.top[l.name] {
		s.breaksLocked("token %d of %s after %d", l.token, l.name, s.top[l.name])
	}
	s.top[l.name] = l.token
	s.live[l.name] = append(s.live[l.name], l)
	s.mu.Unlock()
	s.checkValid(l.name)
	if p == nil {
		return
	}
	if s.d.chance(s.plan.cutAfter) && !s.isCalm() {
		s.note("p%d is cut off after its acquire", id)
		s.cutOff(p)
		time.AfterFunc(2*s.plan.lease, func() {
			if !p.isGone() {
				p.db.dead.Store(false)
			}
		})
	}
}

// checkValid is mutual exclusion: at no instant do two leases of a lock say that they
// are valid, in whatever process.
func (s *schedule) checkValid(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var valid []*Lease
	s.live[name] = slices.DeleteFunc(s.live[name], func(l *Lease) bool { return l.ended.Load() != nil })
	for _, l := range s.live[name] {
		if l.Valid() {
			valid = append(valid, l)
		}
	}
	if len(valid) > 1 {
		s.breaksLocked("two leases of %s are valid: %s/%d for %v and %s/%d for %v", name,
			valid[0].label, valid[0].token, valid[0].Remaining(), valid[1].label, valid[1].token, valid[1].Remaining())
	}
}

// watchValidity checks between the events too.
func (s *schedule) watchValidity() {
	for sleep(s.ended, 50*time.Millisecond) {
		for i := range s.plan.names {
			s.checkValid(fmt.Sprint("lock-", i))
		}
	}
}

// checkTable reads the table's whole history: every write has a version of its own, and
// every lease a token above all that the lock had before.
func (s *schedule) checkTable() {
	top := map[string]int64{}
	versions := map[string]bool{}
	owners := map[string]string{}
	for _, r := range s.w.server.Records(testTable) {
		name := changeOf(r).Name
		after := image(r.Dynamodb.NewImage)
		if after == nil {
			continue
		}
		if versions[after.RVN] {
			s.breaks("version %s of %s was written twice", after.RVN, name)
		}
		versions[after.RVN] = true
		if after.Released || owners[name] == after.Owner {
			continue
		}
		owners[name] = after.Owner
		if after.Token <= top[name] {
			s.breaks("in the table %s got token %d after %d", name, after.Token, top[name])
		}
		top[name] = after.Token
	}
}

func (s *schedule) timeline() string {
	return strings.Join(s.lines[max(0, len(s.lines)-maxLines):], "\n")
}
