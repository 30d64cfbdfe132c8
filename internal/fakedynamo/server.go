package fakedynamo

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstream/lockstream/internal/fakedynamo/expr"
)

// Options are the settings of a new server. Most can be changed later.
type Options struct {
	// Region appears in ARNs and is the region of the clients; empty means
	// us-east-1.
	Region string
	// TableDelay is how long a table is CREATING, UPDATING or DELETING.
	TableDelay time.Duration
	// Latency is spent by every request, half before and half after it is applied.
	Latency time.Duration
	// PageBytes is how much Query and Scan read at most for a page; 0 means 1 MB.
	PageBytes int
	// LogSize is how many requests the log keeps; 0 means 1024.
	LogSize int
}

// Server is an in-memory DynamoDB with streams. It is an HTTP client for the
// SDK ([Server.Do]), an [http.Handler], and has a front without HTTP
// ([Server.API]). All methods are safe for concurrent use.
type Server struct {
	region string

	tableDelay   atomic.Int64
	latency      atomic.Int64
	pageBytes    atomic.Int64
	tolerance    atomic.Int64
	offset       atomic.Int64
	noDate       atomic.Bool
	lastSecond   atomic.Pointer[second]
	lastMetadata atomic.Pointer[timedMetadata]
	intercept    atomic.Pointer[InterceptFunc]
	arrivals     atomic.Int64
	answers      atomic.Int64

	log   requestLog
	cache expr.Cache

	mu       sync.Mutex // never held across a wait
	tables   map[string]*table
	streams  map[string]*stream
	rules    StreamRules
	lists    bucket
	streamNo int // makes labels of streams that are enabled in the same instant differ
	tokens   tokenCache

	lifeMu sync.Mutex
	closed bool
	done   chan struct{}
	late   sync.WaitGroup
}

var _ http.Handler = (*Server)(nil)

// New starts an empty server. Inside a synctest bubble it must be made inside
// the bubble. The caller closes it.
func New(optFns ...func(*Options)) *Server {
	var o Options
	for _, fn := range optFns {
		fn(&o)
	}
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	if o.LogSize <= 0 {
		o.LogSize = 1024
	}
	s := &Server{
		region:  o.Region,
		tables:  map[string]*table{},
		streams: map[string]*stream{},
		tokens:  tokenCache{entries: map[string]tokenEntry{}},
		done:    make(chan struct{}),
	}
	s.log.limit = o.LogSize
	s.log.counts = map[string]int{}
	s.SetTableDelay(o.TableDelay)
	s.SetLatency(o.Latency)
	s.SetPageBytes(o.PageBytes)
	return s
}

// Close ends every waiting request with a connection error and waits until
// each write that was to be applied late has been applied. Requests that come
// later fail with a connection error. It may be called more than once; every
// call waits.
func (s *Server) Close() {
	s.lifeMu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
	s.lifeMu.Unlock()
	s.late.Wait()
}

// SetTableDelay changes [Options.TableDelay] for table operations from now on.
func (s *Server) SetTableDelay(d time.Duration) { s.tableDelay.Store(int64(d)) }

// SetLatency changes [Options.Latency] for requests from now on.
func (s *Server) SetLatency(d time.Duration) { s.latency.Store(int64(d)) }

// SetPageBytes changes [Options.PageBytes]; 0 restores 1 MB.
func (s *Server) SetPageBytes(n int) {
	if n <= 0 {
		n = 1 << 20
	}
	s.pageBytes.Store(int64(n))
}
