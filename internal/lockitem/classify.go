package lockitem

import (
	"strings"

	"github.com/lockstream/lockstream/lockevent"
)

// Owner returns the name of one lease's owner: the client's id and a part that is
// unique to the lease. Neither part may contain the separator.
func Owner(clientID, lease string) string { return clientID + ownerSeparator + lease }

const ownerSeparator = "#"

// clientOf returns the client's part of an owner that Owner made, "" for any other.
func clientOf(owner string) string {
	client, _, ok := strings.Cut(owner, ownerSeparator)
	if !ok {
		return ""
	}
	return client
}

// Classify tells what a change did from the two images of the item; nil stands for an
// image that there is not: an absent item, or one that is not a lock. Both nil is
// Unknown.
//
// It never takes lockOp's word for anything but the difference between a release and
// a reap, and even there only where this very change wrote it: a foreign client leaves
// the attribute stale.
func Classify(before, after *Item) lockevent.Kind {
	switch {
	case before == nil && after == nil:
		return lockevent.Unknown
	case after == nil:
		return lockevent.Deleted
	case after.Released:
		if before != nil && !before.Released && after.Op == OpReap && before.Op != OpReap {
			return lockevent.Reaped
		}
		return lockevent.Released
	case before == nil || before.Released:
		return lockevent.Acquired
	case before.Owner == after.Owner && before.Token == after.Token:
		return lockevent.Renewed
	case passedOn(*before, *after):
		return lockevent.HandedOver
	}
	return lockevent.TakenOver
}

// passedOn reports a hand-over: the same client's next lease with the very next token.
// A takeover by the same client takes the server's time as its token.
func passedOn(before, after Item) bool {
	client := clientOf(before.Owner)
	return client != "" && client == clientOf(after.Owner) && after.Token == before.Token+1
}
