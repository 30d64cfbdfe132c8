// Package lambda is the place of what runs in AWS Lambda: a function that reaps expired
// locks, and help for functions that take locks. Neither is there yet; until then a
// function uses package lockclient without a notifier.
//
// A function differs from a service in three ways that matter to a lock. It may be frozen
// between two invocations and thawed much later, so a lease must be found expired before
// the first write after a thaw: leases are judged by the boot-time clock too. It has a
// deadline, so a lease must not outlive the invocation. And it runs in thousands of
// copies, so it must not read the table's stream, which serves about two readers: it
// waits by a jittered poll.
package lambda
