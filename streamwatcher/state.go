package streamwatcher

// State is what the reader is doing.
type State uint8

// The states of a reader. Only in Live is Ready's answer nil.
const (
	Dormant   State = iota // nobody waits: no goroutine, no request
	Resolving              // asking for the stream of the table
	Listing                // asking for the shards of the stream
	Arming                 // waiting for the first answer of every leaf shard
	Live                   // every shard is read
	Gap                    // an event may have been missed; reading is being resumed
	Degraded               // nothing can be read at present
	Closed                 // Close was called
)

var stateNames = [...]string{
	Dormant: "dormant", Resolving: "resolving", Listing: "listing", Arming: "arming",
	Live: "live", Gap: "gap", Degraded: "degraded", Closed: "closed",
}

// String returns the state in lower case.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// Cause says why an event may have been missed.
type Cause string

// The causes of a gap.
const (
	CauseSilent  Cause = "silent"       // no successful poll for too long
	CauseExpired Cause = "expired"      // an iterator expired
	CauseTrimmed Cause = "trimmed"      // records were dropped before they were read
	CauseLost    Cause = "shard lost"   // a shard disappeared while it was read
	CauseOrphan  Cause = "no child"     // a drained shard shows no child
	CauseUnarmed Cause = "not armed"    // a shard found later does not answer
	CauseClock   Cause = "clock jump"   // the process or machine was suspended, or a clock was set
	CauseLate    Cause = "late shard"   // a shard was missing from the lists before
	CauseRestart Cause = "reader begun" // a reader went through all states to live
)
