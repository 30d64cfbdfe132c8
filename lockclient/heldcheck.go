package lockclient

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/lockitem"
)

// HeldCheck returns an action for TransactWriteItems that lets the transaction commit
// only while this lease holds the lock. It names owner and fencing token and not the
// version, so renewals do not disturb it. It costs two write units for the transaction,
// so put one check into a batch, not one for each row.
//
// It sends nothing and works after the lease's end too: the transaction is then refused
// with a ConditionalCheckFailed reason at the check's index.
func (l *Lease) HeldCheck() types.TransactWriteItem {
	return lockitem.HeldCheck(l.owner, l.token).CheckItem(l.c.table, l.c.layout.Key(l.name))
}
