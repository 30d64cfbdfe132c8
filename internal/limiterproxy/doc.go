// Package limiterproxy stands between clients and a DynamoDB endpoint on this machine and
// gives it the limits of the service that local endpoints lack: GetRecords is throttled
// for each shard over all readers, DescribeStream over all streams, and a change is shown
// in the stream only some time after it was written. Everything else passes unchanged.
//
// It is for tests and measurements: it listens on the loopback interface only and checks
// no signature.
package limiterproxy
