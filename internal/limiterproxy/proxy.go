package limiterproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
)

// Options are the limits. Zero takes the default.
type Options struct {
	ReadsPerSecond int           // GetRecords for each shard; default 5
	ListsPerSecond int           // DescribeStream; default 10
	Visibility     time.Duration // from a write to its record; default none
}

// StreamsAPI is what the proxy needs of the endpoint's streams for its own use.
type StreamsAPI interface {
	GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(context.Context, *dynamodbstreams.GetRecordsInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error)
}

// Proxy is a server that runs. Its methods are safe for concurrent use.
type Proxy struct {
	opt     Options
	streams StreamsAPI
	forward *httputil.ReverseProxy
	server  http.Server
	address string

	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	served sync.WaitGroup // the server and the tails

	mu        sync.Mutex
	lists     bucket
	shards    map[string]*shard // by stream and id
	iterators map[string]*shard // those that were given out
	counts    Counts
	err       error // that ended the server by itself
}

// Counts are how many calls the proxy has seen.
type Counts struct {
	GetRecords     int // that were let through
	Throttled      int // GetRecords that were not
	ListsThrottled int // DescribeStream that were not
	HeldBack       int // pages that were cut because a record was not to be seen yet
}

// Start begins to listen in front of an endpoint. streams is a client of that endpoint
// itself.
func Start(upstream string, streams StreamsAPI, optFns ...func(*Options)) (*Proxy, error) {
	opt := Options{ReadsPerSecond: 5, ListsPerSecond: 10}
	for _, fn := range optFns {
		fn(&opt)
	}
	if opt.ReadsPerSecond < 1 || opt.ListsPerSecond < 1 || opt.Visibility < 0 {
		return nil, fmt.Errorf("limiterproxy: limits %+v are not positive", opt)
	}
	target, err := url.Parse(upstream)
	if err != nil || target.Host == "" {
		return nil, fmt.Errorf("limiterproxy: endpoint %q is no URL: %w", upstream, errors.Join(err, errNoHost))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("limiterproxy: %w", err)
	}
	p := &Proxy{
		opt: opt, streams: streams, address: "http://" + listener.Addr().String(),
		shards: make(map[string]*shard), iterators: make(map[string]*shard),
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.forward = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
	}, ModifyResponse: p.answered}
	p.server.Handler = http.HandlerFunc(p.serve)
	p.served.Go(func() {
		if err := p.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.err = err
		}
	})
	return p, nil
}

var errNoHost = errors.New("it needs a scheme and a host")

// Endpoint is the proxy's own base URL.
func (p *Proxy) Endpoint() string { return p.address }

// Counts returns what the proxy has seen so far.
func (p *Proxy) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// Close ends all connections and waits for the proxy's goroutines. It is safe to call
// twice. It returns the error that ended the server before, if any.
func (p *Proxy) Close() error {
	p.stop()
	err := p.server.Close()
	p.served.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.err, err)
}

// serve refuses what is beyond a limit and forwards the rest.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	switch _, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); op {
	case "DescribeStream":
		if !p.mayList() {
			refuse(w)
			return
		}
	case "GetShardIterator", "GetRecords":
		call, err := p.read(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if op == "GetRecords" && !p.mayRead(call) {
			refuse(w)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), callKey{}, call))
	}
	p.forward.ServeHTTP(w, r)
}

func (p *Proxy) mayList() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lists.take(time.Now(), p.opt.ListsPerSecond) {
		return true
	}
	p.counts.ListsThrottled++
	return false
}

// mayRead asks the shard's limit, which all its readers share.
func (p *Proxy) mayRead(c *call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.shard = p.iterators[c.in.ShardIterator]
	if c.shard == nil || c.shard.reads.take(time.Now(), p.opt.ReadsPerSecond) {
		p.counts.GetRecords++
		return true
	}
	p.counts.Throttled++
	return false
}

// refuse answers as the service does: with a code that no model of the SDK has.
func refuse(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(http.StatusBadRequest)
	// A client that has gone is no concern of the proxy.
	_, _ = w.Write([]byte(`{"__type":"com.amazon.coral.service#ThrottlingException","message":"Rate exceeded for shard"}`))
}

// bucket is the allowance of calls at a rate, with room for those of one second.
type bucket struct {
	tokens float64
	filled time.Time
}

func (b *bucket) take(now time.Time, perSecond int) bool {
	room := float64(perSecond)
	if b.filled.IsZero() {
		b.tokens = room
	} else {
		b.tokens = min(room, b.tokens+room*now.Sub(b.filled).Seconds())
	}
	b.filled = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
