// Package leases measures what the lock client costs: requests, reads and failed writes,
// and the processor time and memory of many leases and waiters in one process.
//
// The figures are tests, because most of them need virtual time. Under go test they run
// small; with the flag -figures they run at full size, for about a minute and a half, and
// the last line of the output is RESULT with everything as JSON:
//
//	go test -c -o .build/bench-leases ./internal/bench/leases && .build/bench-leases -figures
//
// Virtual: request counts and the spread of renewals, on the in-memory table. Real: the
// processor time of renewing, through the SDK and HTTP on the loopback interface. The
// server of that figure is a process of its own, so that its time is not in the figure.
package leases
