// Package lockattr holds the names of a lock item's attributes and nothing else.
//
// It imports nothing, so that the deployment code, which is a module of its own,
// can take the name of the TTL attribute and of the keys from the same place as
// the code that writes them.
package lockattr

// The first block is the layout of the AWS DynamoDB Lock Client, which lets both
// share a table. The key's name is only the default; a table may use another.
const (
	Key                 = "key"
	OwnerName           = "ownerName"
	LeaseDuration       = "leaseDuration"
	RecordVersionNumber = "recordVersionNumber"
	Data                = "data"
	IsReleased          = "isReleased"
)

// The second block is Lockstream's own.
const (
	FencingToken = "fencingToken"
	HolderLabel  = "holderLabel"
	AcquiredAt   = "acquiredAt"
	LeaseUntil   = "leaseUntil"
	TTL          = "ttl"
	LockOp       = "lockOp"
	Paused       = "paused"
	StopBy       = "stopBy"
)

// All lists every name above but the key: a table's key attributes must not be
// called like any of them.
func All() []string {
	return []string{
		OwnerName, LeaseDuration, RecordVersionNumber, Data, IsReleased,
		FencingToken, HolderLabel, AcquiredAt, LeaseUntil, TTL, LockOp, Paused, StopBy,
	}
}
