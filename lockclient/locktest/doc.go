// Package locktest helps to test code that uses locks, without DynamoDB.
//
// # A table in memory
//
// New makes a table that lasts as long as the test. Table.Client gives clients of it, each
// like another process, which use the real SDK up to its HTTP. Further processes need no
// client: Hold, Reap, TakeOver and Delete do to a lock what they would, State shows it, Next
// lets the next requests of the clients fail, hang or lose their answer, and TurnedAway waits
// until a contender waits.
//
//	func TestNightlyWaitsItsTurn(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			table := locktest.New(t)
//			other := table.Hold("nightly")
//			done := make(chan error)
//			go func() { done <- RunNightly(t.Context(), table.Client().Locker()) }()
//			table.TurnedAway("nightly")
//			other.Release()
//			if err := <-done; err != nil {
//				t.Error(err)
//			}
//		})
//	}
//
// # Time
//
// A table works in real time and in the virtual time of testing/synctest, where leases of
// an hour run out in microseconds. In a bubble, make the table inside it, with the bubble's
// t: that one's cleanups run inside the bubble, before it waits for its goroutines, so the
// table's clients, renewals and all are gone by then. The test itself has to end only what
// it started. The bubble's t.Context has ended when cleanups run; the table does not use it.
//
// A holder that lives renews for ever, so a bubble with one is never deadlocked: a test that
// waits for what will not happen spins until the test binary's time-out. Bound waits with
// AcquireOptions.Wait or a context, as TurnedAway does for itself.
//
// # A contract for lockers
//
// TestLocker holds any lockclient.Locker to its contract: (*lockclient.Client).Locker, and
// one of your own that keeps its locks elsewhere.
package locktest
