package lockclient

import (
	"context"
	"errors"
	"time"
)

// ErrMaxHold says that the lease was renewed no more because AcquireOptions.MaxHold had
// passed. It is found in the *LostError of such a lease, and Renew returns it.
var ErrMaxHold = errors.New("lockclient: the longest hold has passed")

// limitHold ends the renewals once most has passed. The lease runs out then and is not
// freed: its holder's work may still be under way.
func (l *Lease) limitHold(most time.Duration) {
	if most == 0 {
		return
	}
	timer := time.AfterFunc(most, func() {
		l.outlived.Store(true)
		l.stopRenews()
	})
	context.AfterFunc(l.ctx, func() { timer.Stop() })
}
