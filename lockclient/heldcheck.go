package lockclient

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/lockitem"
)

// HeldCheck returns an action for TransactWriteItems that lets the transaction commit
// only while this lease holds the lock. It names owner and fencing token and not the
// version, so renewals do not disturb it. It costs two write units for the transaction,
// so put one check into a batch, not one for each row.
//
// It sends nothing and works after the lease's end too: the transaction is then refused
// with a ConditionalCheckFailed reason at the check's index. A transaction that is sent
// without Lease.Transact can conflict with the lease's renewals; ClassifyTransaction tells
// that from a loss.
func (l *Lease) HeldCheck() types.TransactWriteItem {
	return lockitem.HeldCheck(l.owner, l.token).CheckItem(l.c.table, l.c.layout.Key(l.name))
}

// Condition is a condition for a write to one item, with its placeholders.
type Condition struct {
	Table      string
	Key        map[string]types.AttributeValue
	Expression string
	Names      map[string]string
	Values     map[string]types.AttributeValue
}

// HeldCondition returns what HeldCheck checks as the condition of a single UpdateItem to the
// lock's own item, for attributes of the caller's own that live there: no transaction is
// needed for those, which is cheaper and conflicts with nothing. The update must leave the
// keys and the lock's attributes alone. Placeholders for it must not begin with #ownerName,
// #fencingToken, #isReleased or :mine.
func (l *Lease) HeldCondition() Condition {
	e := lockitem.HeldCheck(l.owner, l.token)
	return Condition{Table: l.c.table, Key: l.c.layout.Key(l.name), Expression: e.Condition, Names: e.Names, Values: e.Values}
}

// HeldChecks returns the held checks of the lease whose context ctx is, or descends from, and
// of the leases around it, innermost first: those of a Do within a Do, or of a LeaseSet. So
// code deep in the work fences its writes without the leases being passed down. It returns
// nil for a context without a lease. A lease that has ended is among them: what it fenced
// must not be written any more.
func HeldChecks(ctx context.Context) []types.TransactWriteItem {
	var checks []types.TransactWriteItem
	for _, l := range leasesOf(ctx) {
		checks = append(checks, l.HeldCheck())
	}
	return checks
}

// leasesOf returns the leases of a context, innermost first.
func leasesOf(ctx context.Context) []*Lease {
	var leases []*Lease
	l, _ := LeaseFromContext(ctx)
	for ; l != nil; l = l.outer {
		leases = append(leases, l)
	}
	return leases
}
