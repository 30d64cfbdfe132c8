package lockitem

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lockstream/lockstream/internal/lockattr"
)

// Mark asks the holder of a lock to stop by a time. Its next renewal is refused and finds the
// mark; the lease of others counts anew from it.
func Mark(seen Version, stopBy time.Time, rvn string) Expr {
	b := newBuilder()
	b.whereVersion(seen)
	b.where(b.missing(lockattr.IsReleased))
	b.put(lockattr.RecordVersionNumber, str(rvn))
	b.put(lockattr.LockOp, str(OpMark))
	b.putTime(lockattr.StopBy, stopBy)
	return b.expr()
}

// Revoke frees a held lock by an operator's word, also a paused one.
func Revoke(seen Version, t Touch) Expr {
	b := newBuilder()
	b.whereVersion(seen)
	b.where(b.missing(lockattr.IsReleased))
	b.free(t, OpRelease)
	return b.expr()
}

// Pause lets nobody acquire a lock any more. A holder keeps it. The item has no TTL while it
// is paused: the pause must outlive the retention.
func Pause(seen Version, reason, rvn string) Expr {
	b := newBuilder()
	b.whereVersion(seen)
	b.touch(Touch{RVN: rvn}, OpPause)
	b.put(lockattr.Paused, str(reason))
	return b.expr()
}

// PauseAbsent writes a free, paused lock where no item is.
func PauseAbsent(l Layout, token int64, reason, rvn string) Expr {
	b := newBuilder()
	b.where(b.missing(l.Partition))
	b.free(Touch{RVN: rvn}, OpPause)
	b.put(lockattr.FencingToken, num(token))
	b.put(lockattr.Paused, str(reason))
	return b.expr()
}

// Resume ends a pause.
func Resume(seen Version, t Touch) Expr {
	b := newBuilder()
	b.whereVersion(seen)
	b.where(b.exists(lockattr.Paused))
	b.touch(t, OpResume)
	b.drop(lockattr.Paused)
	return b.expr()
}

// RaiseFloorHeld lifts the token of a held lock. Its holder has lost it by that; the lock
// stays held until a lease has passed.
func RaiseFloorHeld(seen Version, token int64, rvn string, ttl time.Time) Expr {
	b := newBuilder()
	b.whereVersion(seen)
	b.where(b.missing(lockattr.IsReleased))
	b.put(lockattr.RecordVersionNumber, str(rvn))
	b.put(lockattr.LockOp, str(OpFloor))
	b.putTime(lockattr.TTL, ttl)
	b.put(lockattr.FencingToken, num(token))
	return b.expr()
}

// scanPage is how many items of a table one request looks at, at most.
const scanPage = 1000

// ListInput returns the request for the first page of the locks whose names begin with
// prefix. A filter costs as much as what it filters out: the whole table is read.
func ListInput(l Layout, table, prefix string) *dynamodb.ScanInput {
	b := newBuilder()
	b.where(b.exists(lockattr.RecordVersionNumber))
	if key := l.Prefix + prefix; key != "" {
		b.names["#partition"] = l.Partition
		b.where("begins_with(#partition, " + b.value("prefix", str(key)) + ")")
	}
	if l.Sort != "" {
		b.names["#sort"] = l.Sort
		b.where("#sort = " + b.value("sort", str(l.SortValue)))
	}
	e := b.expr()
	in := &dynamodb.ScanInput{
		TableName: &table, ConsistentRead: aws.Bool(true), Limit: aws.Int32(scanPage),
		FilterExpression: &e.Condition, ExpressionAttributeNames: e.Names,
	}
	if len(e.Values) > 0 { // the service refuses an empty map
		in.ExpressionAttributeValues = e.Values
	}
	return in
}
