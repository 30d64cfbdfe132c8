// Package streamwatcher reads the DynamoDB stream of a lock table and tells waiters by
// name when their lock has changed, so that they need not poll the table. It implements
// lockevent.Notifier.
//
//	watcher, err := streamwatcher.New(dynamodb.NewFromConfig(cfg), dynamodbstreams.NewFromConfig(cfg), "locks")
//
// The table's stream must be enabled with the view type NEW_AND_OLD_IMAGES. The reader
// needs dynamodb:DescribeTable on the table and dynamodb:DescribeStream,
// dynamodb:GetShardIterator and dynamodb:GetRecords on its stream. Where one of these is
// missing Ready says so with a *StreamError, and waiters go on by themselves.
//
// # One reader
//
// A Watcher is one reader, however many names and waiters it serves: a process makes one
// for each table. It sends nothing until the first Watch and becomes dormant, without a
// goroutine or a request, when nobody has waited for Options.IdleAfter.
//
//	          Watch             stream found         shards found        all leaves answer
//	dormant ─────────► resolving ──────────► listing ───────────► arming ──────────────► live
//	   ▲                  ▲                                                             │  ▲
//	   └── nobody waits ──┼── no stream, no permission: degraded, next attempt later ◄──┤  │
//	                      └── stream gone or replaced, process suspended for long ◄─────┤  │
//	                                             an event may have been missed: gap ◄───┘  │
//	                                                        every shard is read again ─────┘
//
// # Ordering
//
// The changes of one lock come in their order: a shard is read by one goroutine, and a
// child shard is read from its beginning after its parent was read to the end. Changes of
// different locks have no order. A mailbox keeps the newest change only, so a waiter may
// not see those in between; a Subscription sees each of them. A record that its shard has
// shown before is left out. A reader begins five seconds back where the service can, and
// after a resync changes may repeat: a change may be older than a waiter's last look at the
// table, and is a hint for that reason too.
//
// # Gaps
//
// Silence never means that nothing happened. Whenever a change may have been missed (no
// successful poll of a shard for 2 s or three intervals, an expired iterator, trimmed
// records, a lost shard, a drained shard without a child for 2 s, a suspended process, a
// clock that was set) every watch receives a Resync at once and another one when reading
// is complete again; in between Ready is not nil. A shard that was missing from the
// lists before is read from its beginning, with one Resync: lists are made again 1, 3 and
// 10 s after shards have changed and every Options.RelistInterval, so what such a shard
// holds may be that late. Resyncs go out at Options.ResyncRate, oldest watch first, one at a
// time for each watch. A watch whose Ready was blocked when the reader became live gets
// Ready's nil in place of that Resync.
//
// After an outage of more than a minute the backlog is skipped: the table is the truth.
// Reading is complete again at most six seconds after an outage has ended, and a call's
// time-out if one had just begun to hang. A leaf shard is told by having no children, never
// by its sequence numbers, and a shard has ended when its iterator has.
//
// # Subscriptions
//
// Subscribe gives every change of all locks, or of those with a prefix, with its kind:
// acquired, renewed (if asked for), handed over, released, taken over, reaped, deleted (and
// whether by the table's time to live). It begins with a Resync, and has one in the place
// of whatever it may have missed. A subscriber that is slow loses what its buffer of
// SubscribeOptions.Buffer changes does not hold, is told so by a Resync, and delays nobody.
//
// # Observations
//
// While it reads, a Watcher remembers the last version of the 65,536 locks that changed
// last and when it received that version first: Observed, which is lockevent.Observations.
// A contender that comes to a lock whose holder is dead need not watch it for a whole lease:
// if the table still has a version that was seen that long ago, the holder has not renewed
// since. The takeover names that version in its condition, so an observation that is late
// or a gap does no harm. The memory is bounded: some 20 MB with usual names, reached after that
// many locks were seen; a lock with a name above 255 bytes is not remembered.
//
// # Latency
//
// A change is seen by the next poll of its shard: half of Options.PollInterval in the
// mean, one interval and the time of one call at most, plus the time that the service
// takes to show it. A shard's child costs up to 250 ms more, once in about four hours.
// When nothing that anybody waits for has happened for 30 s the interval doubles, after
// 60 s it is four times as long (one second at most); a new watch or event brings it
// back. make bench-watch measures it.
//
// # Cost
//
// GetRecords costs about $0.20 for a million calls; the other calls are few and free.
// While somebody waits, a month of one process costs at the most
//
//	2,592,000 s × (1 s / PollInterval) × open shards × $0.20 / 1,000,000
//
//	PollInterval   1 shard   4 shards
//	 50 ms         $10.37     $41.47
//	250 ms          $2.07      $8.29
//	  1 s           $0.52      $2.07
//
// and a quarter of that at 250 ms when little happens. Nothing while nobody waits, however
// many locks there are and however often they change; waiters add nothing. A lock table
// with modest traffic has one open shard.
//
// The service advises at most two readers of a shard; beyond, it throttles all of them.
// A throttled reader widens its interval up to 5 s and narrows it again slowly. Throttling
// that goes on is reported once in the log and in Stats.Crowded. Larger fleets need another
// source of events behind lockevent.Notifier.
package streamwatcher
