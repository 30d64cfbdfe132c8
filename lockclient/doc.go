// Package lockclient holds locks that are items of a DynamoDB table.
//
// A lock has at most one holder. The holder has a lease: a time-bounded right that it
// renews, that ends a context when it is lost, and that carries a fencing token.
// Contenders wait for the lock without polling the table: a notifier (package
// streamwatcher, or any other lockevent.Notifier) wakes them.
//
// # States of a lock
//
//	          acquire                     renew (new version, same token)
//	absent ───────────────► held ◄──────────────────────────────┐
//	released ─────────────►  │ ───────────────────────────────► ┘
//	     ▲    token rises    │
//	     │                   ├─ hand over: next contender of the same client, token + 1
//	     │ release, reap     ├─ takeover: version unchanged for a whole lease, token rises
//	     └───────────────────┘
//
// Every write of an item sets a fresh record version number (RVN), and every write but
// the acquire of an unknown lock names the version that it replaces. So of two writes to
// one state of a lock only one succeeds, and the loser is told the present state.
//
// # Operations
//
// Each is one UpdateItem with a condition. "Mine" is owner, RVN and token of this lease.
//
//	operation               condition                                  token afterwards
//	acquire, unknown        absent; or released, token < now,          now
//	                        not paused
//	acquire, known          RVN and token as seen, released,           max(seen + 1, now)
//	                        not paused
//	take over               RVN and token as seen for a whole lease,   max(seen + 1, now)
//	                        held, not paused
//	hand over               mine, held, not paused                     mine + 1
//	renew                   mine, held                                 mine
//	release                 mine, held                                 mine
//	raise the floor,        RVN and token as seen, released;           that of the abandoned
//	leave a tombstone       or absent                                  acquire
//
// "now" is the server's time in microseconds, and above the tokens of the same
// operation's older attempts. A refused write is told the present item. From it follows
// what comes next: an RVN of one of the operation's own attempts means that it had been
// applied; one of an abandoned operation is freed; anything else is somebody's.
//
// # States of a lease
//
// A lease holds from its acquire on. It renews itself every third of the lease; a renewal
// that fails or gets no answer is sent again with a new RVN, one at a time, until one gets
// through or the trusted part of the lease is over. When less than
// AcquireOptions.ExpiringBefore of it is left, OnExpiring is called. The lease ends once,
// and its context with it:
//
//	by Release        ErrReleased; then the lock is freed, or passed to the next contender
//	by Close          Closed; then the lock is freed
//	by its clocks     Expired or Clock; the lock runs out with its lease and is not freed,
//	                  because the holder's work may still be under way
//	by a refusal      TakenOver, Reaped, Deleted or Revoked, by what the item shows. A
//	                  revoked lease's Release frees the lock, once its work is over
//
// # Promises
//
// Mutual exclusion of those who believe that they hold. A holder counts its lease from
// before the write that granted or renewed it was sent, and trusts 95 % of it less a
// millisecond. A contender counts from after it first saw the version, waits the whole
// lease, and takes over only that version. So
//
//	holder's end = sent + 0.95·lease  ≤  first seen + lease = earliest takeover
//
// as long as both clocks run at rates within 2 % of each other. What the clocks show does
// not matter: no time of one machine is ever compared with that of another. A holder
// gives up when any of three clocks says so: the monotonic one, the boot-time clock (it
// runs on while the machine sleeps) and the wall clock. A wall clock that is set forward
// may cost a lease, with the reason Clock; one that is set back never lengthens one.
//
// Fencing. A process that is paused past its lease can still act late; the lease's
// context cannot stop it. A later acquire of the lock always carries a larger token, for
// ever, also after the item was deleted; so a system that refuses tokens below the
// largest it has seen is safe. For writes to DynamoDB itself, HeldCheck in the same
// transaction lets them commit only while the lease holds the lock.
//
// Events are hints. The conditional write alone decides who holds. With a notifier that
// is dead, late or lying, every contender still gets the lock: by its own timer at the
// end of the holder's lease, and by a slow fallback.
//
// Ambiguous writes are settled. Each attempt is one request with a version of its own,
// and the SDK's retries are off. When a write's answer is lost, the next one's refusal
// shows by the version whether it had been applied, and the lease counts from when THAT
// attempt was sent. A release that was refused because others had the lock meanwhile, while
// the lease could still be trusted, had been applied. A caller that goes while its acquire
// is unknown leaves a detached, bounded clean-up behind, which releases what was applied and lifts the token so that a
// late copy fails.
//
// Not promised: fairness between processes; fencing over writers that are not Lockstream
// or over a table restored from a backup; locks over several Regions.
//
// # Waiting
//
// An acquire tries first: one write. Only when it fails does it watch the name, wait
// until the notifier is live (at most Options.ReadyWait), and read once. Then it sends
// nothing until a change frees the lock, the observed lease ends, the notifier says
// that it may have missed something, or nothing was heard for Options.Fallback. Events
// of renewals move the observed lease's end and cost nothing. Without a notifier, or
// while it is not live, contenders poll once a second, jittered. A version counts as seen
// from when this client heard of it and is read before it is taken over, so no event, true
// or false, brings a takeover forward.
//
// Contenders of one client for one name queue in order, and only the first is on the
// wire. A release passes the lock to the next of them in one write (not with new data or
// attributes, nor when the lock is paused), at most eight times in a row; then it is free for other processes, and this client stands back until
// another took it or a tenth of the lease has passed. Whoever leaves the head of the
// queue without the lock makes the next one look at once.
//
// # Work
//
// Acquire's context bounds the wait only, and the lease outlives it. Do binds the hold to
// its context and runs work under it; RunAsLeader contends again whenever the lock was
// lost, and keeps the lock for its work's end. Neither frees a lock under work that still
// runs.
//
// # Tokens
//
// A token is the server's time in microseconds at the acquire, or the item's last token
// plus one, whichever is larger; it fits in 53 bits. Server time is estimated from the
// Date of DynamoDB's answers. Leases never use it.
package lockclient
