package lockclient

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/internal/lockattr"
	"github.com/lockstream/lockstream/internal/lockitem"
	"github.com/lockstream/lockstream/lockevent"
)

const testTable = "locks"

// serverAhead is how far the server's wall clock is ahead of the machines' in virtual
// time, which begins in the year 2000.
const serverAhead = 27 * 365 * 24 * time.Hour

// world is one table in virtual time, with the real SDK client in front of it.
type world struct {
	t      *testing.T
	ctx    context.Context
	server *fakedynamo.Server
	events *events
	mu     sync.Mutex
	open   []*Client
}

// bubble runs fn with a new world in virtual time. Whatever fn leaves running fails the
// test.
func bubble(t *testing.T, fn func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, ctx: t.Context(), server: fakedynamo.New(func(o *fakedynamo.Options) { o.Latency = 4 * time.Millisecond })}
		w.events = newEvents()
		w.server.SetClockOffset(serverAhead) // the machines here live in the year 2000
		w.createTable(testTable)
		w.server.Requests().Reset()
		fn(w)
		w.mu.Lock()
		open := w.open
		w.mu.Unlock()
		w.server.Intercept(nil)
		for _, c := range open {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			_ = c.Close(ctx)
			cancel()
		}
		w.server.Close()
	})
}

func (w *world) createTable(name string) {
	_, err := w.server.API().CreateTable(w.ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String(name),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: types.KeyTypeHash}},
		StreamSpecification:  streamSpec(),
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// client returns a client like another process's. Without options it polls. Its clocks are
// the virtual one: the machine's real boot-time clock would show a slow machine in a bubble.
func (w *world) client(optFns ...func(*Options)) *Client {
	w.t.Helper()
	db := &telling{DynamoDBAPI: w.server.Client(), events: w.events}
	c, err := New(db, testTable, append([]func(*Options){func(o *Options) {
		o.LeaseDuration, o.clock = 10*time.Second, &skewedClock{}
	}}, optFns...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = append(w.open, c)
	return c
}

// watching makes a client use the world's notifier.
func (w *world) watching(o *Options) { o.Notifier = w.events }

func (w *world) acquire(c *Client, name string, optFns ...func(*AcquireOptions)) *Lease {
	w.t.Helper()
	l, err := c.Acquire(w.ctx, name, optFns...)
	if err != nil {
		w.t.Fatalf("Acquire(%q): %v", name, err)
	}
	return l
}

func (w *world) release(l *Lease) {
	w.t.Helper()
	if err := l.Release(w.ctx); err != nil {
		w.t.Fatalf("Release(%q): %v", l.Name(), err)
	}
}

// item reads the table behind everybody's back; nil is absent.
func (w *world) item(name string) *lockitem.Item {
	w.t.Helper()
	m := w.server.Item(testTable, lockitem.Layout{Partition: lockattr.Key}.Key(name))
	if m == nil {
		return nil
	}
	it, err := lockitem.Decode(m)
	if err != nil {
		w.t.Fatal(err)
	}
	return &it
}

func (w *world) requests(op string) int { return w.server.Requests().Count(op) }

// crash makes a client stop like a killed process: nothing of it reaches the table any
// more, and nothing is released. Its leases run out for themselves.
func crash(c *Client) {
	c.db.(*telling).dead.Store(true)
}

// pending is a call that runs in a goroutine of its own.
type pending struct {
	done  chan struct{}
	lease *Lease
	err   error
	at    time.Time
}

func (w *world) goAcquire(ctx context.Context, c *Client, name string, optFns ...func(*AcquireOptions)) *pending {
	p := &pending{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.lease, p.err = c.Acquire(ctx, name, optFns...)
		p.at = time.Now()
	}()
	return p
}

func (p *pending) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *pending) mustHold(t *testing.T) *Lease {
	t.Helper()
	<-p.done
	if p.err != nil {
		t.Fatalf("acquire: %v", p.err)
	}
	return p.lease
}

// fault makes the next n requests with this operation meet f, and all others pass.
func (w *world) fault(op string, n int, f fakedynamo.Fault) {
	var mu sync.Mutex
	w.server.Intercept(func(_ context.Context, r *fakedynamo.Request) fakedynamo.Fault {
		mu.Lock()
		defer mu.Unlock()
		if r.Op != op || n == 0 {
			return fakedynamo.Fault{}
		}
		n--
		return f
	})
}

func wantErr(t *testing.T, err error, want ...error) {
	t.Helper()
	for _, e := range want {
		if !errors.Is(err, e) {
			t.Errorf("error %v, want one that is %v", err, e)
		}
	}
}

var _ lockevent.Notifier = (*events)(nil)

// steal changes a held item as somebody else would, bypassing the protocol.
func (w *world) steal(l *Lease, owner string, release bool) {
	m := w.server.Item(testTable, l.c.layout.Key(l.name))
	m[lockattr.RecordVersionNumber] = &types.AttributeValueMemberS{Value: newRVN()}
	if release {
		m[lockattr.IsReleased] = &types.AttributeValueMemberS{Value: "1"}
	} else {
		m[lockattr.OwnerName] = &types.AttributeValueMemberS{Value: owner}
		m[lockattr.HolderLabel] = &types.AttributeValueMemberS{Value: "thief"}
	}
	if err := w.server.PutRaw(testTable, m); err != nil {
		w.t.Fatal(err)
	}
}

// version is the last one that l knows to be in the table.
func version(l *Lease) string {
	<-l.gate
	defer func() { l.gate <- struct{}{} }()
	return l.rvn
}
