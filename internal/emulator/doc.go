// Package emulator runs the local DynamoDB emulator for tests and the demo.
//
// [Start] starts one emulator process on a free loopback port and returns when it answers, about 50 ms later.
// [Open] does the same, except that it uses the endpoint of the environment (AWS_ENDPOINT_URL_DYNAMODB or
// AWS_ENDPOINT_URL) and starts nothing when there is one. The data live in memory and end with the process.
//
// The emulator slows down as stream records pile up in it. Keep one below about 5,000 stream records, use a fresh one
// for each test or phase, and keep counters in tables without a stream.
//
// Who starts an emulator stops it with [Emulator.Stop]. On Linux the kernel also kills it when its parent dies, so that
// it never survives a parent that was killed.
package emulator
