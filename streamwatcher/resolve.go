package streamwatcher

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	dbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// streamKept is how long the answer of DescribeTable is used again.
const streamKept = 5 * time.Minute

// streamCache remembers the table's stream over dormancy.
type streamCache struct {
	mu   sync.Mutex
	arn  string
	last string // is not forgotten
	at   time.Time
}

func (c *streamCache) get(now time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.arn == "" || now.Sub(c.at) > streamKept {
		return ""
	}
	return c.arn
}

// put reports whether the stream is another one than before.
func (c *streamCache) put(arn string, now time.Time) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed = c.last != arn
	c.arn, c.last, c.at = arn, arn, now
	return changed
}

func (c *streamCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arn = ""
}

// resolve asks which stream the table has. Its error is a *StreamError where only an
// operator can mend it.
func (w *Watcher) resolve(ctx context.Context) (string, error) {
	const op = "DescribeTable"
	table, err := w.api.describeTable(ctx)
	if err != nil {
		return "", w.operatorFault(op, err, ErrNoTable)
	}
	spec := table.StreamSpecification
	arn := aws.ToString(table.LatestStreamArn)
	switch {
	case arn == "", spec == nil, !aws.ToBool(spec.StreamEnabled):
		return "", &StreamError{Table: w.table, Region: w.region, Reason: ErrNoStream}
	case spec.StreamViewType != dbtypes.StreamViewTypeNewAndOldImages:
		return "", &StreamError{Table: w.table, Region: w.region, Reason: ErrViewType}
	}
	return arn, nil
}

// operatorFault wraps the errors that no retry mends in a *StreamError and returns any
// other as it is. missing is the reason where the resource does not exist.
func (w *Watcher) operatorFault(op string, err, missing error) error {
	switch classify(err) {
	case faultAccess:
		return &StreamError{Table: w.table, Region: w.region, Op: op, Reason: ErrAccess, Err: err}
	case faultGone:
		return &StreamError{Table: w.table, Region: w.region, Op: op, Reason: missing, Err: err}
	}
	return err
}
