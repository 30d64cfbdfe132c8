package lockitem

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/lockattr"
)

// Version names one state of an item as somebody saw it. A foreign client's item may
// have no token; the condition then demands that it still has none.
type Version struct {
	RVN      string
	Token    int64
	HasToken bool
}

// Version returns the state that it shows.
func (it Item) Version() Version {
	return Version{RVN: it.RVN, Token: it.Token, HasToken: it.HasToken}
}

// Hold names one lease in one state: what its holder must prove with every write.
type Hold struct {
	Owner string
	RVN   string
	Token int64
}

// Grant is what an acquiring write puts into the item.
type Grant struct {
	Owner      string
	RVN        string // fresh for this attempt
	Token      int64
	Label      string
	Lease      time.Duration
	Format     LeaseFormat
	Data       []byte // written where SetData is true; otherwise the item keeps its data
	SetData    bool
	AcquiredAt time.Time
	LeaseUntil time.Time // zero: not known, not written
	TTL        time.Time // zero: not written
}

// Touch is what every other write of a lock puts into the item.
type Touch struct {
	RVN        string        // fresh for this attempt
	Lease      time.Duration // renew only
	Format     LeaseFormat   // renew only
	Data       []byte
	SetData    bool
	LeaseUntil time.Time                       // renew only
	TTL        time.Time                       // zero: not written
	Attributes map[string]types.AttributeValue // others' own, none of the lock's: see Layout.CheckAttributes
	Floor      int64                           // release only: what the token is lifted to
}

// AcquireUnknown takes a lock of which nothing is known: absent, or released with a
// token below g.Token. The token is the server's time of this attempt, so the same
// expression fails for ever once the lock has been acquired by a later one: that is
// what makes a copy of the request harmless that arrives late.
func AcquireUnknown(l Layout, g Grant) Expr {
	b := newBuilder()
	b.where(b.missing(l.Partition) + " OR (" + b.exists(lockattr.RecordVersionNumber) + " AND " + b.isReleased() +
		" AND " + b.name(lockattr.FencingToken) + " < :" + lockattr.FencingToken + " AND " + b.missing(lockattr.Paused) + ")")
	return b.grant(g, OpAcquire)
}

// AcquireReleased takes a lock whose released state is known.
func AcquireReleased(seen Version, g Grant) Expr {
	b := newBuilder()
	b.whereVersion(seen)
	b.where(b.isReleased())
	b.where(b.missing(lockattr.Paused))
	return b.grant(g, OpAcquire)
}

// Takeover takes a lock whose holder left the state seen unchanged for a whole lease.
func Takeover(seen Version, g Grant) Expr {
	b := newBuilder()
	b.whereVersion(seen)
	b.where(b.missing(lockattr.IsReleased))
	b.where(b.missing(lockattr.Paused))
	return b.grant(g, OpTakeover)
}

// HandOver passes a held lock to another contender.
func HandOver(mine Hold, g Grant) Expr {
	b := newBuilder()
	b.whereHeld(mine)
	b.where(b.missing(lockattr.Paused))
	return b.grant(g, OpHandOver)
}

// Renew proves that the holder is alive.
func Renew(mine Hold, t Touch) Expr {
	b := newBuilder()
	b.whereHeld(mine)
	b.touch(t, OpRenew)
	b.put(lockattr.LeaseDuration, str(t.Format.format(t.Lease)))
	b.putTime(lockattr.LeaseUntil, t.LeaseUntil)
	return b.expr()
}

// Release frees a lock that its holder gives back, and lifts its token to t.Floor where
// that is larger.
func Release(mine Hold, t Touch) Expr {
	b := newBuilder()
	b.whereHeld(mine)
	b.free(t, OpRelease)
	if t.Floor > mine.Token {
		b.put(lockattr.FencingToken, num(t.Floor))
	}
	return b.expr()
}

// Reap frees a lock whose holder was proven dead in the state seen.
func Reap(seen Version, t Touch) Expr {
	b := newBuilder()
	b.whereVersion(seen)
	b.where(b.missing(lockattr.IsReleased))
	b.where(b.missing(lockattr.Paused))
	b.free(t, OpReap)
	return b.expr()
}

// RaiseFloor lifts the token of a free lock, so that a late copy of an acquire with a
// token at or below it fails.
func RaiseFloor(seen Version, token int64, t Touch) Expr {
	b := newBuilder()
	b.whereVersion(seen)
	b.where(b.isReleased())
	b.touch(t, OpRelease)
	b.put(lockattr.FencingToken, num(token))
	return b.expr()
}

// Tombstone writes a free lock where no item is, for the same purpose as RaiseFloor.
func Tombstone(l Layout, token int64, t Touch) Expr {
	b := newBuilder()
	b.where(b.missing(l.Partition))
	b.free(t, OpRelease)
	b.put(lockattr.FencingToken, num(token))
	return b.expr()
}

// Delete removes a free lock whose retention has passed at now; for DeleteInput.
func Delete(seen Version, now time.Time) Expr {
	b := newBuilder()
	b.whereVersion(seen)
	b.where(b.isReleased())
	b.where(b.missing(lockattr.Paused))
	b.where(b.name(lockattr.TTL) + " < " + b.value("now", num(now.Unix())))
	return b.expr()
}

// HeldCheck holds while the lease holds the lock. It does not name the RVN, which
// changes with every renewal.
func HeldCheck(owner string, token int64) Expr {
	b := newBuilder()
	b.where(b.equals(lockattr.OwnerName, "mineOwner", str(owner)))
	b.where(b.equals(lockattr.FencingToken, "mineToken", num(token)))
	b.where(b.missing(lockattr.IsReleased))
	return b.expr()
}

func (b *builder) whereVersion(v Version) {
	b.where(b.equals(lockattr.RecordVersionNumber, "seenRVN", str(v.RVN)))
	if v.HasToken {
		b.where(b.equals(lockattr.FencingToken, "seenToken", num(v.Token)))
	} else {
		b.where(b.missing(lockattr.FencingToken))
	}
}

func (b *builder) whereHeld(mine Hold) {
	b.where(b.equals(lockattr.RecordVersionNumber, "mineRVN", str(mine.RVN)))
	b.where(b.equals(lockattr.OwnerName, "mineOwner", str(mine.Owner)))
	b.where(b.equals(lockattr.FencingToken, "mineToken", num(mine.Token)))
	b.where(b.missing(lockattr.IsReleased))
}

func (b *builder) grant(g Grant, op string) Expr {
	b.put(lockattr.OwnerName, str(g.Owner))
	b.put(lockattr.LeaseDuration, str(g.Format.format(g.Lease)))
	b.put(lockattr.RecordVersionNumber, str(g.RVN))
	b.put(lockattr.FencingToken, num(g.Token))
	b.put(lockattr.HolderLabel, str(g.Label))
	b.put(lockattr.LockOp, str(op))
	b.putTime(lockattr.AcquiredAt, g.AcquiredAt)
	b.putTime(lockattr.LeaseUntil, g.LeaseUntil)
	b.putTime(lockattr.TTL, g.TTL)
	b.putData(g.Data, g.SetData)
	b.drop(lockattr.IsReleased)
	b.drop(lockattr.StopBy)
	return b.expr()
}

func (b *builder) touch(t Touch, op string) {
	b.put(lockattr.RecordVersionNumber, str(t.RVN))
	b.put(lockattr.LockOp, str(op))
	b.putTime(lockattr.TTL, t.TTL)
	b.putData(t.Data, t.SetData)
	b.putOthers(t.Attributes)
}

func (b *builder) free(t Touch, op string) {
	b.touch(t, op)
	b.put(lockattr.IsReleased, str("1"))
	b.drop(lockattr.LeaseUntil)
	b.drop(lockattr.StopBy)
}

// putData with no bytes removes the attribute: an empty payload and none are one thing.
func (b *builder) putData(data []byte, set bool) {
	switch {
	case !set:
	case len(data) == 0:
		b.drop(lockattr.Data)
	default:
		b.put(lockattr.Data, &types.AttributeValueMemberB{Value: data})
	}
}
