package lockclient

import (
	"slices"

	"github.com/lockstream/lockstream/internal/lockitem"
)

// attempt is one request of a write: the version it would give the item, and when it
// was composed, which is when a lease counts from if it was applied.
type attempt struct {
	rvn   string
	owner string
	token int64
	lease window
}

// attempts are those of ONE operation whose outcome is unknown. An item that carries the
// version of one of them was written by it. They are never pooled over operations: a
// finished operation's version belongs to nobody, and to adopt it would give two holders.
type attempts []attempt

func (as attempts) find(it *lockitem.Item) (attempt, bool) {
	if it == nil {
		return attempt{}, false
	}
	for _, a := range as {
		if a.rvn == it.RVN {
			return a, true
		}
	}
	return attempt{}, false
}

// has reports whether rvn is the version of one of the attempts.
func (as attempts) has(rvn string) bool {
	return slices.ContainsFunc(as, func(a attempt) bool { return a.rvn == rvn })
}

// topToken is the largest token that any of the attempts would write.
func (as attempts) topToken() int64 {
	var top int64
	for _, a := range as {
		top = max(top, a.token)
	}
	return top
}

// above returns the attempts that would write a larger token.
func (as attempts) above(token int64) attempts {
	return slices.DeleteFunc(slices.Clone(as), func(a attempt) bool { return a.token <= token })
}

func (a attempt) hold() lockitem.Hold {
	return lockitem.Hold{Owner: a.owner, RVN: a.rvn, Token: a.token}
}
