// Package contract checks that a DynamoDB behaves as the lock client and the
// stream reader of this project need it to. One suite, [Run], is meant for
// the in-memory fake, for an emulator and for the service itself; what an
// emulator is known to do differently is switched off by [Options].
//
// The suite makes its own tables with random names and deletes them.
package contract
