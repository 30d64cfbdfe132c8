package streamwatcher

import (
	"time"

	"github.com/lockstream/lockstream/lockevent"
)

// Observer is told what the reader does; every field may be nil. The functions run on
// the reader's own goroutines, several at a time: they must be quick and safe for
// concurrent use and must not call the Watcher's Close. A panic is logged and goes no
// further.
type Observer struct {
	Request   func(op string, err error) // every call to the service, by operation name
	Poll      func(Poll)                 // every GetRecords call
	Wake      func(lockevent.Change)     // every change that a watch was told of, resyncs apart
	Gap       func(Cause)                // an event may have been missed
	State     func(from, to State, err error)
	Throttled func(op string)
}

// Poll describes one GetRecords call.
type Poll struct {
	Shard   string
	Records int           // records in the page, of all items
	Took    time.Duration // from the call to its answer
	Err     error         // nil for an answer
}
