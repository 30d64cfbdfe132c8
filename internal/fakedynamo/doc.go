// Package fakedynamo is an in-memory Amazon DynamoDB with DynamoDB Streams for
// tests. It evaluates real expressions, gives the service's own errors, and
// lets a test decide over the fate of every single request.
//
// There are two fronts over the same tables. [Server.Client] and
// [Server.StreamsClient] are the real SDK clients, whose HTTP goes to the
// server without a network; the server is an http.Handler as well. [Server.API]
// has the methods of these clients without HTTP and JSON, for millions of
// operations.
//
// A server works inside a testing/synctest bubble when it is made inside it:
// it waits only on timers and channels, never with a mutex held, and its clock
// is time.Now plus an offset. Outside a bubble it works in real time.
//
// What happens to a request is decided by the function given to
// [Server.Intercept], which returns a [Fault]. [Server.Requests] tells what has
// arrived. [Server.SetStreamRules] sets how streams behave and [Server.Shards] what
// becomes of their shards: they rotate, split, end, vanish and are trimmed when a test
// says so. [Server.Item], [Server.PutRaw], [Server.DeleteRaw],
// [Server.Records] and [Server.ExpireTTL] bypass both.
//
// Differences from the service: reads are always consistent; there are no
// secondary indexes, batches, PartiQL or parameters from before expressions;
// signatures are not checked; a transaction meets another one only when a
// fault says so; a stream has one shard, which stays open and loses nothing
// unless [Server.Shards] is used.
package fakedynamo
