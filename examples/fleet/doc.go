// Command fleet shows Lockstream at work: several processes contend for locks in a
// DynamoDB table, and get them by pushed events, without asking the table while they wait.
//
// It starts a local emulator (or uses the endpoint of the environment), four worker
// processes of its own binary, kills one of them and pauses another, then runs the same
// locks with contenders that poll, and compares. It ends with status 0 when every promise
// held, 1 when one was broken or something failed, 130 when it was interrupted. The last
// line of a complete run is RESULT with JSON.
//
// # Parts
//
//	scenario.go, faults.go      what happens, in order
//	fleet.go, child.go          the supervisor: processes, their events, clean-up
//	worker.go, contender.go     a worker: how a program uses lockclient and streamwatcher
//	counter.go                  the fenced write, in one transaction with the held check
//	traffic.go                  counts the requests of waiters, apart from the library
//	history.go, measure.go      what was seen, and what follows from it
//	result.go, summary.go       the verdict, for programs and for people
//	view.go, screen.go          the view while it runs
//
// # How processes talk
//
// The supervisor sends commands to a worker's standard input and reads events from its
// standard output, each a line of JSON. Times are readings of the machine's monotonic
// clock, which all processes on it share, so that times between processes are exact.
package main
