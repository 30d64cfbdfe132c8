package streamwatcher

import (
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	dbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/lockstream/lockstream/internal/lockattr"
	"github.com/lockstream/lockstream/internal/lockitem"
	"github.com/lockstream/lockstream/lockevent"
)

// lockAttributes are the attributes that are taken from a record's images.
var lockAttributes = lockattr.All()

// take hands the change that a record shows to those who wait for its name. A record of
// a name that nobody waits for is remembered and not decoded.
func (w *Watcher) take(rec *types.Record, at time.Time) {
	name, ok := w.lockName(rec)
	if !ok {
		return
	}
	w.seen.note(rec, name, at)
	if !w.hub.wanted(name) {
		return
	}
	change, verdict := readRecord(rec, name, at)
	w.counters.update(func(s *Stats) {
		switch verdict {
		case foreignRecord:
			s.Foreign++
			return
		case hintRecord:
			s.Hints++
		}
		s.Changes++
		if created := rec.Dynamodb.ApproximateCreationDateTime; created != nil {
			s.Lag = w.age(*created)
		}
	})
	if verdict == foreignRecord {
		return
	}
	woken := w.hub.deliver(change)
	if woken == 0 {
		return
	}
	w.counters.update(func(s *Stats) { s.Wakes += uint64(woken) })
	w.notify(func(o *Observer) {
		if o.Wake != nil {
			o.Wake(change)
		}
	})
}

// age returns how long ago by the server's clock, in whole seconds; 0 where that is
// unknown.
func (w *Watcher) age(created time.Time) time.Duration {
	now, ok := w.server.now()
	if !ok {
		return 0
	}
	return max(0, now.Sub(created)).Truncate(time.Second)
}

// lockName returns the name of the lock that a record is about. It reads the keys in
// place, without conversion or allocation: most records are of names that nobody waits
// for.
func (w *Watcher) lockName(rec *types.Record) (string, bool) {
	if rec.Dynamodb == nil {
		return "", false
	}
	l := &w.layout
	key, ok := rec.Dynamodb.Keys[l.Partition].(*types.AttributeValueMemberS)
	if !ok {
		return "", false
	}
	if l.Sort != "" {
		sort, ok := rec.Dynamodb.Keys[l.Sort].(*types.AttributeValueMemberS)
		if !ok || sort.Value != l.SortValue {
			return "", false
		}
	}
	name, ok := strings.CutPrefix(key.Value, l.Prefix)
	return name, ok && name != ""
}

// verdict is what a record is good for.
type verdict uint8

const (
	lockRecord    verdict = iota // its images show the change
	hintRecord                   // something changed; what, the images do not show
	foreignRecord                // no lock, neither before nor after
)

// readRecord returns the change that a record of a wanted name shows. The kind comes
// from the two images, never from an attribute that a foreign client may have left
// behind; where they are missing or wrong the change is of kind Unknown: a hint.
func readRecord(rec *types.Record, name string, at time.Time) (lockevent.Change, verdict) {
	d := rec.Dynamodb
	change := lockevent.Change{Name: name, Sequence: aws.ToString(d.SequenceNumber), SeenAt: at}
	if !complete(rec) {
		return change, hintRecord
	}
	before, errBefore := image(d.OldImage)
	after, errAfter := image(d.NewImage)
	switch {
	case unreadable(errBefore), unreadable(errAfter):
		return change, hintRecord
	case before == nil && after == nil:
		return change, foreignRecord
	}
	change.Kind = lockitem.Classify(before, after)
	if after == nil {
		change.Token, change.Expired = before.Token, byTTL(rec)
		return change, lockRecord
	}
	change.RVN, change.Token, change.Lease = after.RVN, after.Token, after.Lease
	change.Held = !after.Released
	return change, lockRecord
}

// byTTL reports whether the table's time to live deleted the item, and not a client.
func byTTL(rec *types.Record) bool {
	id := rec.UserIdentity
	return id != nil && rec.EventName == types.OperationTypeRemove &&
		aws.ToString(id.Type) == "Service" && aws.ToString(id.PrincipalId) == "dynamodb.amazonaws.com"
}

// complete reports whether a record has the images that its kind must have.
func complete(rec *types.Record) bool {
	hasOld, hasNew := len(rec.Dynamodb.OldImage) > 0, len(rec.Dynamodb.NewImage) > 0
	switch rec.EventName {
	case types.OperationTypeInsert:
		return hasNew
	case types.OperationTypeModify:
		return hasOld && hasNew
	case types.OperationTypeRemove:
		return hasOld && !hasNew
	}
	return false
}

// image decodes one image. An absent item is lockitem.ErrNotALock, as is one that is not
// a lock.
func image(m map[string]types.AttributeValue) (*lockitem.Item, error) {
	if _, ok := m[lockattr.RecordVersionNumber]; !ok {
		return nil, lockitem.ErrNotALock
	}
	attrs := make(map[string]dbtypes.AttributeValue, len(lockAttributes))
	for _, name := range lockAttributes {
		if v, ok := m[name]; ok {
			attrs[name] = convert(v)
		}
	}
	item, err := lockitem.Decode(attrs)
	if err != nil {
		return nil, err
	}
	return &item, nil
}

func unreadable(err error) bool { return err != nil && !errors.Is(err, lockitem.ErrNotALock) }

// convert turns a value of the streams client's types into one of the table client's.
// Only the types that a lock's attributes have are worth their content; any other keeps
// its type alone, which is all that the decoder asks for.
func convert(v types.AttributeValue) dbtypes.AttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return &dbtypes.AttributeValueMemberS{Value: v.Value}
	case *types.AttributeValueMemberN:
		return &dbtypes.AttributeValueMemberN{Value: v.Value}
	case *types.AttributeValueMemberB:
		return &dbtypes.AttributeValueMemberB{Value: v.Value}
	case *types.AttributeValueMemberBOOL:
		return &dbtypes.AttributeValueMemberBOOL{Value: v.Value}
	case *types.AttributeValueMemberNULL:
		return &dbtypes.AttributeValueMemberNULL{Value: v.Value}
	case *types.AttributeValueMemberM:
		return &dbtypes.AttributeValueMemberM{}
	case *types.AttributeValueMemberL:
		return &dbtypes.AttributeValueMemberL{}
	case *types.AttributeValueMemberSS:
		return &dbtypes.AttributeValueMemberSS{}
	case *types.AttributeValueMemberNS:
		return &dbtypes.AttributeValueMemberNS{}
	case *types.AttributeValueMemberBS:
		return &dbtypes.AttributeValueMemberBS{}
	}
	return nil
}
