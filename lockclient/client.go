package lockclient

import (
	"container/list"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lockstream/lockstream/internal/lockitem"
)

// DynamoDBAPI is the part of *dynamodb.Client that a Client uses. Locking needs GetItem
// and UpdateItem; Transact needs TransactWriteItems, List and RaiseFloor need Scan; the rest
// is for EnsureTable only.
type DynamoDBAPI interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)

	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	UpdateTable(context.Context, *dynamodb.UpdateTableInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
}

// Client acquires locks that are items of one table. It is safe for concurrent use. A
// process needs one for each table; two for the same table contend like strangers.
type Client struct {
	db     DynamoDBAPI
	table  string
	region string
	id     string // first part of every owner name
	opt    Options
	layout lockitem.Layout
	server serverTime

	// open ends when Close begins, life when Close is done or gives up waiting;
	// everything detached hangs on life.
	open    context.Context
	shut    context.CancelCauseFunc
	life    context.Context
	endLife context.CancelCauseFunc
	work    sync.WaitGroup

	mu     sync.Mutex // guards what follows; never held over I/O
	closed bool
	locks  map[string]*slot
	idle   list.List // of *slot kept for their observation only, oldest first
	leases map[*Lease]struct{}
	ticks  chan struct{} // closed to stop the clock watch; nil while it does not run

	closing   atomic.Bool
	closeDone chan struct{}
	closeErr  error
}

// New returns a client for the locks in table. It sends nothing and starts nothing. The
// error is ErrInvalidOption and lists everything that is wrong.
func New(db DynamoDBAPI, table string, optFns ...func(*Options)) (*Client, error) {
	var o Options
	for _, fn := range optFns {
		fn(&o)
	}
	o.setDefaults()
	var errs []error
	if db == nil {
		errs = append(errs, fmt.Errorf("%w: no DynamoDB client", ErrInvalidOption))
	}
	if table == "" {
		errs = append(errs, fmt.Errorf("%w: no table name", ErrInvalidOption))
	}
	errs = append(errs, o.validate())
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	c := &Client{
		db: db, table: table, region: regionOf(db), id: randomID(), opt: o, layout: o.layout(),
		locks: map[string]*slot{}, leases: map[*Lease]struct{}{}, closeDone: make(chan struct{}),
	}
	c.open, c.shut = context.WithCancelCause(context.Background())
	c.life, c.endLife = context.WithCancelCause(context.Background())
	return c, nil
}

// regionOf asks an SDK client for its Region, for error texts only.
func regionOf(db any) string {
	if c, ok := db.(interface{ Options() dynamodb.Options }); ok {
		return c.Options().Region
	}
	return ""
}

// randomID returns 80 random bits in 16 characters.
func randomID() string { return strings.ToLower(rand.Text()[:16]) }

// newRVN returns a record version number: 130 random bits.
func newRVN() string { return rand.Text() }

// Close releases every lease of the client, ends the wait of every contender with
// ErrClosed and waits for all it started. The contexts of leases end before their
// release is sent. When ctx ends first, Close abandons what is left, which then runs
// out with its lease, and returns the context's error with those of the releases,
// joined. It is safe to call twice and concurrently: later calls wait for the first and
// return its result.
func (c *Client) Close(ctx context.Context) error {
	if c.closing.CompareAndSwap(false, true) {
		c.mu.Lock()
		c.closed = true
		leases := make([]*Lease, 0, len(c.leases))
		for l := range c.leases {
			leases = append(leases, l)
		}
		c.mu.Unlock()
		c.shut(ErrClosed)
		c.closeErr = c.shutDown(ctx, leases)
		close(c.closeDone)
	}
	select {
	case <-c.closeDone: // also when ctx has ended too
		return c.closeErr
	default:
	}
	select {
	case <-c.closeDone:
		return c.closeErr
	case <-ctx.Done():
		return c.wrap("close", "", ctx.Err())
	}
}

// closeParallel bounds how many releases Close has on the wire at a time.
const closeParallel = 16

func (c *Client) shutDown(ctx context.Context, leases []*Lease) error {
	stop := context.AfterFunc(ctx, func() { c.endLife(errCloseTimeout) })
	defer stop()

	// All of them stop work before the first is released. One that has ended meanwhile is
	// given back, or was lost, by whoever ended it.
	leases = slices.DeleteFunc(leases, func(l *Lease) bool {
		return !l.end(&LostError{Name: l.name, Token: l.token, Reason: Closed})
	})
	errs := make([]error, len(leases))
	slots := make(chan struct{}, closeParallel)
	var releases sync.WaitGroup
	for i, l := range leases {
		releases.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = c.wrap("release", l.name, l.giveBack(c.life, ReleaseOptions{}))
		})
	}
	releases.Wait()
	c.work.Wait() // all of it ends when life does
	if err := ctx.Err(); err != nil {
		errs = append(errs, c.wrap("close", "", err))
	}
	c.endLife(ErrClosed)
	return errors.Join(errs...)
}

// begin adds the caller to the work that Close waits for, or returns ErrClosed. The
// caller must call c.work.Done when it returns nil.
func (c *Client) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.work.Add(1)
	return nil
}

// detach runs fn in a goroutine that Close waits for, with a context that outlives the
// caller and is bounded by the release time-out.
func (c *Client) detach(fn func(ctx context.Context)) {
	c.work.Go(func() {
		ctx, cancel := context.WithTimeoutCause(c.life, c.opt.ReleaseTimeout, errReleaseTimeout)
		defer cancel()
		fn(ctx)
	})
}
