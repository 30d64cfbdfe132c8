package lockitem

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/lockattr"
)

// MaxToken is the largest fencing token: above it a reader that keeps numbers as
// doubles would confuse two neighbours.
const MaxToken = int64(1) << 53

// ErrNotALock is returned for an item that has no record version number: somebody's
// ordinary item, which must not be touched.
var ErrNotALock = errors.New("not a lock")

// TypeError says that an attribute has not the type or form that a lock's has.
type TypeError struct {
	Attribute string
	Want      string // the type and form that was expected
	Got       string // the type that was found, with the value where that helps
}

func (e *TypeError) Error() string {
	return fmt.Sprintf("attribute %q: want %s, got %s", e.Attribute, e.Want, e.Got)
}

// Item is one state of a lock as read from the table.
type Item struct {
	Owner      string
	Lease      time.Duration // as written; a caller caps it
	RVN        string
	Data       []byte // nil when absent
	Released   bool
	Token      int64 // 0 with HasToken false for a foreign client's item
	HasToken   bool
	Label      string
	AcquiredAt time.Time // zero when absent
	LeaseUntil time.Time // zero when absent
	TTL        time.Time // zero when absent
	Op         string
	Paused     bool
	PauseNote  string    // the reason given with the pause
	StopBy     time.Time // zero when nobody asked the holder to stop
}

// Decode reads a lock item strictly. The error is ErrNotALock for an item without a
// record version number and a *TypeError for an attribute of a wrong type or form.
func Decode(m map[string]types.AttributeValue) (Item, error) {
	if _, ok := m[lockattr.RecordVersionNumber]; !ok {
		return Item{}, ErrNotALock
	}
	d := decoder{m: m}
	it := Item{
		Owner:      d.str(lockattr.OwnerName),
		RVN:        d.str(lockattr.RecordVersionNumber),
		Data:       d.bin(lockattr.Data),
		Label:      d.str(lockattr.HolderLabel),
		AcquiredAt: d.millis(lockattr.AcquiredAt),
		LeaseUntil: d.millis(lockattr.LeaseUntil),
		Op:         d.str(lockattr.LockOp),
		StopBy:     d.millis(lockattr.StopBy),
	}
	it.Released = d.released(lockattr.IsReleased)
	it.Lease = d.lease(lockattr.LeaseDuration, it.Released)
	it.Token, it.HasToken = d.token(lockattr.FencingToken)
	if secs, ok := d.int(lockattr.TTL); ok {
		it.TTL = time.Unix(secs, 0)
	}
	if _, ok := m[lockattr.Paused]; ok {
		it.Paused, it.PauseNote = true, d.str(lockattr.Paused)
	}
	if d.err == nil && it.RVN == "" {
		d.fail(lockattr.RecordVersionNumber, "a non-empty string", `S ""`)
	}
	if d.err != nil {
		return Item{}, d.err
	}
	return it, nil
}

// decoder keeps the first error, so that Decode reads as a list of attributes.
type decoder struct {
	m   map[string]types.AttributeValue
	err error
}

func (d *decoder) fail(attr, want, got string) {
	if d.err == nil {
		d.err = &TypeError{Attribute: attr, Want: want, Got: got}
	}
}

func (d *decoder) str(attr string) string {
	v, ok := d.m[attr]
	if !ok {
		return ""
	}
	s, ok := v.(*types.AttributeValueMemberS)
	if !ok {
		d.fail(attr, "S", typeName(v))
		return ""
	}
	return s.Value
}

func (d *decoder) bin(attr string) []byte {
	v, ok := d.m[attr]
	if !ok {
		return nil
	}
	switch b := v.(type) {
	case *types.AttributeValueMemberB:
		return b.Value
	case *types.AttributeValueMemberNULL: // a foreign client's way to write no data
		return nil
	}
	d.fail(attr, "B", typeName(v))
	return nil
}

func (d *decoder) int(attr string) (int64, bool) {
	v, ok := d.m[attr]
	if !ok {
		return 0, false
	}
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		d.fail(attr, "N", typeName(v))
		return 0, false
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		d.fail(attr, "N, an integer", "N "+n.Value)
		return 0, false
	}
	return i, true
}

func (d *decoder) millis(attr string) time.Time {
	ms, ok := d.int(attr)
	if !ok {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func (d *decoder) token(attr string) (int64, bool) {
	t, ok := d.int(attr)
	if ok && (t < 0 || t > MaxToken) {
		d.fail(attr, "N between 0 and 2^53", "N "+strconv.FormatInt(t, 10))
		return 0, false
	}
	return t, ok
}

// released accepts the one form that means free. Anything else in that place is an
// error: to take it for held would let a lock hang, to take it for free would give two
// holders.
func (d *decoder) released(attr string) bool {
	if _, ok := d.m[attr]; !ok {
		return false
	}
	if s := d.str(attr); d.err == nil && s != "1" {
		d.fail(attr, `S "1"`, strconv.Quote(s))
	}
	return d.err == nil
}

// lease may be absent on a free item only: nobody could tell when a held one expires.
func (d *decoder) lease(attr string, released bool) time.Duration {
	if _, ok := d.m[attr]; !ok && released {
		return 0
	}
	s := d.str(attr)
	if d.err != nil {
		return 0
	}
	lease, err := ParseLease(s)
	if err != nil {
		d.fail(attr, "S, milliseconds or a duration", strconv.Quote(s))
	}
	return lease
}

// ParseLease reads a lease duration in either form of the field: decimal milliseconds
// ("20000") or a Go duration ("20s"). It must not be negative; one beyond the range of
// a time.Duration counts as the longest.
func ParseLease(s string) (time.Duration, error) {
	if ms, err := strconv.ParseUint(s, 10, 64); err == nil {
		if ms > math.MaxInt64/uint64(time.Millisecond) {
			return math.MaxInt64, nil
		}
		return time.Duration(ms) * time.Millisecond, nil
	}
	lease, err := time.ParseDuration(s)
	if err != nil || lease < 0 {
		return 0, fmt.Errorf("lease duration %q is neither milliseconds nor a duration", s)
	}
	return lease, nil
}

func typeName(v types.AttributeValue) string {
	switch v.(type) {
	case *types.AttributeValueMemberS:
		return "S"
	case *types.AttributeValueMemberN:
		return "N"
	case *types.AttributeValueMemberB:
		return "B"
	case *types.AttributeValueMemberBOOL:
		return "BOOL"
	case *types.AttributeValueMemberNULL:
		return "NULL"
	case *types.AttributeValueMemberM:
		return "M"
	case *types.AttributeValueMemberL:
		return "L"
	case *types.AttributeValueMemberSS:
		return "SS"
	case *types.AttributeValueMemberNS:
		return "NS"
	case *types.AttributeValueMemberBS:
		return "BS"
	}
	return "nothing"
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
