package locktest

import (
	"context"
	"net/http"
	"time"

	"github.com/lockstream/lockstream/internal/fakedynamo"
)

// transport is the way of one SDK client to the table. After each request the watches hear
// of what it changed, whatever becomes of the answer.
type transport struct {
	t      *Table
	client bool // it is a lock client's: its requests are counted and meet faults
}

// passage is one request on its way: the server tells here what it is about.
type passage struct {
	client bool
	key    string // the lock's, "" for a request that is about none
	fault  Fault
}

type passageKey struct{}

// Do implements the SDK's HTTPClient.
func (p *transport) Do(req *http.Request) (*http.Response, error) {
	caller := req.Context()
	half := time.Duration(0)
	if p.client {
		half = p.t.opt.Latency / 2
	}
	if !sleep(caller, half) {
		return nil, caller.Err()
	}
	way := &passage{client: p.client}
	resp, err := p.t.server.Do(req.WithContext(context.WithValue(caller, passageKey{}, way)))
	if way.key != "" {
		p.t.tell(way.key)
	}
	if err != nil {
		return nil, err
	}
	if way.fault == LoseAnswer {
		select {
		case <-caller.Done():
		case <-p.t.ctx.Done():
			return nil, context.Canceled
		}
	}
	if !sleep(caller, half) {
		return nil, caller.Err()
	}
	return resp, nil
}

// decide is called by the server for every request before it is applied.
func (t *Table) decide(ctx context.Context, r *fakedynamo.Request) fakedynamo.Fault {
	way, ok := ctx.Value(passageKey{}).(*passage)
	if !ok {
		return fakedynamo.Fault{}
	}
	if r.Table == t.opt.TableName {
		way.key = r.Key
	}
	if !way.client || way.key == "" {
		return fakedynamo.Fault{}
	}
	way.fault = t.nextFault(r.Op == "GetItem")
	switch way.fault {
	case Fail:
		return fakedynamo.Fault{Error: &fakedynamo.APIError{Code: "InternalServerError", Message: "made to fail by the test", Status: http.StatusInternalServerError}}
	case Hang:
		return fakedynamo.Fault{DropRequest: true}
	}
	return fakedynamo.Fault{} // an answer is lost when there is one
}

// sleep reports whether ctx outlasted d.
func sleep(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil || d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
