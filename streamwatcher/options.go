package streamwatcher

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/lockstream/lockstream/internal/lockattr"
	"github.com/lockstream/lockstream/internal/lockitem"
)

// The smallest and largest poll intervals. Below the first the network is the limit;
// above the second silence could no longer be told from a slow reader.
const (
	minPollInterval = 10 * time.Millisecond
	maxPollInterval = 5 * time.Second
)

// Schema names the table's key attributes, as the lock client's Schema does.
type Schema struct {
	Partition string // "" is "key"
	Sort      string // "" for a table without a sort key
	SortValue string // the sort key's value in every lock item; needed with Sort
}

// Options are the settings of a Watcher. The zero value of each field is its default.
type Options struct {
	// PollInterval is the time between two GetRecords calls to one shard while
	// somebody waits, jittered by 10 %. Default 250 ms, from 10 ms to 5 s.
	PollInterval time.Duration
	// IdleAfter is how long reading goes on after the last watch was stopped, so that
	// the next waiter finds a live reader. Default 30 s.
	IdleAfter time.Duration

	// CallTimeout bounds one GetRecords or GetShardIterator call. Default 2 s.
	CallTimeout time.Duration
	// ListTimeout bounds one DescribeStream or DescribeTable call. Default 5 s.
	ListTimeout time.Duration
	// RelistInterval is the time between two full lists of shards once the reader has
	// settled, jittered by 20 %. Default 60 s.
	RelistInterval time.Duration
	// DegradedRetry is the time between two attempts after a fault that only an
	// operator can mend (no stream, no permission), jittered by 20 %. Default 30 s.
	DegradedRetry time.Duration
	// ResyncRate is how many watches a second are told to look at the table when an
	// event may have been missed. Default 200.
	ResyncRate int

	// Observations is of how many locks the last version is remembered, for
	// Watcher.Observed. Default 65,536; negative: none.
	Observations int

	// Schema and KeyPrefix say where in the table the locks are; they must be those of
	// the clients that lock there.
	Schema    Schema
	KeyPrefix string

	// Logger receives changes of state; nil is silent. Records are never logged.
	Logger *slog.Logger
	// Observer receives what the reader does, for metrics and tests.
	Observer Observer
}

func (o *Options) setDefaults() {
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{
		{&o.PollInterval, 250 * time.Millisecond},
		{&o.IdleAfter, 30 * time.Second},
		{&o.CallTimeout, 2 * time.Second},
		{&o.ListTimeout, 5 * time.Second},
		{&o.RelistInterval, time.Minute},
		{&o.DegradedRetry, 30 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	if o.Observations == 0 {
		o.Observations = observedNames
	}
	if o.ResyncRate == 0 {
		o.ResyncRate = 200
	}
	if o.Schema.Partition == "" {
		o.Schema.Partition = lockattr.Key
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

func (o Options) layout() lockitem.Layout {
	return lockitem.Layout{
		Partition: o.Schema.Partition, Sort: o.Schema.Sort, SortValue: o.Schema.SortValue, Prefix: o.KeyPrefix,
	}
}

// validate reports every broken setting, joined.
func (o Options) validate() error {
	var errs []error
	if o.PollInterval < minPollInterval || o.PollInterval > maxPollInterval {
		errs = append(errs, fmt.Errorf("PollInterval %v is not between %v and %v", o.PollInterval, minPollInterval, maxPollInterval))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"IdleAfter", o.IdleAfter},
		{"CallTimeout", o.CallTimeout},
		{"ListTimeout", o.ListTimeout},
		{"RelistInterval", o.RelistInterval},
		{"DegradedRetry", o.DegradedRetry},
	} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("%s %v is not positive", d.name, d.value))
		}
	}
	if o.ResyncRate <= 0 {
		errs = append(errs, fmt.Errorf("ResyncRate %d is not positive", o.ResyncRate))
	}
	if err := o.layout().Validate(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
