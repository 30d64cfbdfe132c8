package lockclient

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/lockattr"
	"github.com/lockstream/lockstream/internal/lockitem"
	"github.com/lockstream/lockstream/lockevent"
)

// Defaults and bounds of the options.
const (
	DefaultLease     = 20 * time.Second
	MinLease         = time.Second
	DefaultMaxLease  = time.Hour
	DefaultRetention = time.Hour
	// MinRetention is twice the time for which the service accepts a signed request
	// (15 minutes): a released item that were deleted earlier could let a request that
	// arrives late repeat a fencing token.
	MinRetention       = 30 * time.Minute
	DefaultFallback    = time.Minute
	DefaultPoll        = time.Second
	DefaultReadyWait   = 250 * time.Millisecond
	DefaultRelease     = 5 * time.Second
	DefaultMaxData     = 32 << 10
	maxRequestTimeout  = 5 * time.Second
	maxLocalHandOvers  = 8
	maxLabel           = 1024
	firstLookTries     = 4
	maxIdleObservation = 4096
	releaseTries       = 4 // requests that fit into ReleaseTimeout when none is answered
)

// LeaseFormat is the form in which the leaseDuration attribute is written. Both are read.
type LeaseFormat = lockitem.LeaseFormat

// The forms of leaseDuration.
const (
	Milliseconds = lockitem.Milliseconds // "20000": the AWS client for Java, and the default
	GoDuration   = lockitem.GoDuration   // "20s": the Go port of it
)

// Schema names a table's key attributes.
type Schema struct {
	Partition string // "" is "key"
	Sort      string // "" for a table without a sort key
	SortValue string // the sort key's value in every lock item; needed with Sort
}

// Options configure a Client. The zero value of each field is its default.
type Options struct {
	LeaseDuration time.Duration // how long a dead holder keeps a lock; 20 s, from 1 s to MaxLease
	RenewInterval time.Duration // at most a third of the lease, which is the default; jittered down by up to 20 %
	MaxLease      time.Duration // the longest lease written, and believed of others: the same in every client of a table; 1 h
	Retention     time.Duration // how long a released item is kept; 1 h, at least 30 min
	MaxData       int           // largest payload in bytes; 32 KiB

	Label       string      // what operators see as the holder; host name and process id
	Schema      Schema      // the table's keys
	KeyPrefix   string      // put before every lock name
	SharedTable bool        // other clients write locks to the table too: no TTL is written
	LeaseFormat LeaseFormat // of the leaseDuration attribute

	Notifier     lockevent.Notifier // source of wake-ups; nil: contenders poll
	Fallback     time.Duration      // a look although the notifier was silent; 60 s
	PollInterval time.Duration      // without a notifier, or while it is not ready; 1 s, ± 20 %
	ReadyWait    time.Duration      // how long a contender waits for the notifier before its look; 250 ms

	ReleaseTimeout time.Duration // bound of a release and of cleaning up after an abandoned acquire, in which at least four requests fit; 5 s
	Observer       Observer      // hooks
	Logger         *slog.Logger  // nil discards; contention is never logged above Debug

	// AllowShortLease lifts the lower bound of the lease, for tests. A lease must outlive
	// a few round trips to be of use.
	AllowShortLease bool

	clock clock
}

// AcquireOptions configure one Acquire, TryAcquire or Do.
type AcquireOptions struct {
	Wait          time.Duration // how long Acquire waits at most; 0: until its context ends
	LeaseDuration time.Duration // 0: the client's
	Label         string        // "": the client's
	Data          []byte        // payload to write; nil keeps what the item has

	// OnExpiring is called once, in a goroutine of its own, when less than ExpiringBefore
	// of the trust window is left because renewals fail. A renewal that succeeds later
	// arms it anew.
	OnExpiring     func(*Lease)
	ExpiringBefore time.Duration // 0: a third of the lease; below the window less a renew interval

	// MaxHold bounds the hold, against work that never returns: this long after the acquire
	// the lease renews itself no more. It then runs out, so the lock is free at most
	// MaxHold and a lease after the acquire. The loss is ErrMaxHold. 0: no bound.
	MaxHold time.Duration
}

// ReleaseOptions configure one Release.
type ReleaseOptions struct {
	Data []byte // payload to leave in the item; nil keeps what it has

	// Attributes of the caller's own are written with the release, in the same request.
	// The table's keys and the lock's attributes are refused.
	Attributes map[string]types.AttributeValue
}

func (o *Options) setDefaults() {
	set := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	set(&o.LeaseDuration, DefaultLease)
	set(&o.MaxLease, DefaultMaxLease)
	set(&o.Retention, DefaultRetention)
	set(&o.Fallback, DefaultFallback)
	set(&o.PollInterval, DefaultPoll)
	set(&o.ReadyWait, DefaultReadyWait)
	set(&o.ReleaseTimeout, DefaultRelease)
	if o.MaxData == 0 {
		o.MaxData = DefaultMaxData
	}
	if o.Schema.Partition == "" {
		o.Schema.Partition = lockattr.Key
	}
	if o.Label == "" {
		o.Label = defaultLabel()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.clock == nil {
		o.clock = systemClock{}
	}
}

func defaultLabel() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

func (o *Options) layout() lockitem.Layout {
	return lockitem.Layout{
		Partition: o.Schema.Partition, Sort: o.Schema.Sort, SortValue: o.Schema.SortValue,
		Prefix: o.KeyPrefix,
	}
}

// validate reports every broken relation, joined.
func (o *Options) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.MaxLease < MinLease || o.MaxLease > DefaultMaxLease {
		bad("MaxLease %s is not between %s and %s", o.MaxLease, MinLease, DefaultMaxLease)
	}
	if err := o.checkLease(o.LeaseDuration); err != nil {
		errs = append(errs, err)
	}
	if o.RenewInterval < 0 || o.RenewInterval > o.LeaseDuration/3 {
		bad("RenewInterval %s is not between 0 and a third of the lease (%s)", o.RenewInterval, o.LeaseDuration/3)
	}
	if o.Retention < MinRetention || o.Retention > 10*365*24*time.Hour {
		bad("Retention %s is not between %s and ten years", o.Retention, MinRetention)
	}
	for name, d := range map[string]time.Duration{
		"Fallback": o.Fallback, "PollInterval": o.PollInterval, "ReadyWait": o.ReadyWait, "ReleaseTimeout": o.ReleaseTimeout,
	} {
		if d < 0 {
			bad("%s %s is negative", name, d)
		}
	}
	if o.MaxData < 0 || o.MaxData > 350<<10 {
		bad("MaxData %d is not between 0 and 358400 bytes", o.MaxData)
	}
	if len(o.Label) > maxLabel {
		bad("Label is longer than %d bytes", maxLabel)
	}
	if o.LeaseFormat != Milliseconds && o.LeaseFormat != GoDuration {
		bad("LeaseFormat %d is unknown", o.LeaseFormat)
	}
	if err := o.layout().Validate(); err != nil {
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrInvalidOption, errors.Join(errs...))
}

// checkLease says whether a lease may be asked for. The shortest one counts in whole
// milliseconds, which is how it is written.
func (o *Options) checkLease(lease time.Duration) error {
	least := MinLease
	if o.AllowShortLease {
		least = 20 * time.Millisecond
	}
	if lease < least || lease > o.MaxLease || lease%time.Millisecond != 0 {
		return fmt.Errorf("lease %s is not a whole number of milliseconds between %s and %s", lease, least, o.MaxLease)
	}
	return nil
}

// acquireOptions resolves one call's options against the client's.
func (c *Client) acquireOptions(optFns []func(*AcquireOptions)) (AcquireOptions, error) {
	var o AcquireOptions
	for _, fn := range optFns {
		fn(&o)
	}
	if o.LeaseDuration == 0 {
		o.LeaseDuration = c.opt.LeaseDuration
	}
	if o.Label == "" {
		o.Label = c.opt.Label
	}
	if o.ExpiringBefore == 0 {
		o.ExpiringBefore = o.LeaseDuration / 3
	}
	var errs []error
	if err := c.opt.checkLease(o.LeaseDuration); err != nil {
		errs = append(errs, err)
	}
	if o.Wait < 0 {
		errs = append(errs, fmt.Errorf("the Wait of %s is negative", o.Wait))
	}
	if o.MaxHold < 0 {
		errs = append(errs, fmt.Errorf("the MaxHold of %s is negative", o.MaxHold))
	}
	if len(o.Label) > maxLabel {
		errs = append(errs, fmt.Errorf("the Label is longer than %d bytes", maxLabel))
	}
	if err := c.checkData(o.Data); err != nil {
		errs = append(errs, err)
	}
	// Between two renewals that succeed the window never has less left than this.
	if most := trustOf(o.LeaseDuration) - c.renewInterval(o.LeaseDuration); o.ExpiringBefore < 0 || o.ExpiringBefore >= most {
		errs = append(errs, fmt.Errorf("the ExpiringBefore of %s is not between 0 and the trusted part of the lease less a renew interval (%s)", o.ExpiringBefore, most))
	}
	if len(errs) > 0 {
		return o, fmt.Errorf("%w: %w", ErrInvalidOption, errors.Join(errs...))
	}
	return o, nil
}

func (c *Client) checkData(data []byte) error {
	if len(data) > c.opt.MaxData {
		return fmt.Errorf("data has %d bytes, more than MaxData (%d)", len(data), c.opt.MaxData)
	}
	return nil
}

// renewInterval is the longest time between two renewals of a lease.
func (c *Client) renewInterval(lease time.Duration) time.Duration {
	if c.opt.RenewInterval > 0 {
		return min(c.opt.RenewInterval, lease/3)
	}
	return lease / 3
}

// requestTimeout bounds one request, so that several fit into a lease.
func requestTimeout(lease time.Duration) time.Duration { return min(lease/4, maxRequestTimeout) }
