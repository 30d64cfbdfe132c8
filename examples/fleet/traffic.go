package main

import (
	"context"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/lockclient"
)

// traffic tells which requests a waiter sends without having been told to. It looks at
// the requests themselves, as they leave the lock client, and knows from the observer's
// hooks whether the contender on the wire waits and what woke it. Within a process only
// one contender for a lock is on the wire.
type traffic struct {
	emitter

	mu       sync.Mutex
	stage    map[string]stage
	wakes    map[leaseID]lockclient.Wake
	handed   map[leaseID]bool
	requests int
	frozen   bool
}

type leaseID struct {
	lock  string
	token int64
}

// stage is what the contender on the wire does. The zero value is its first look.
type stage struct {
	waiting bool
	wake    lockclient.Wake // what led to the present look, "" for the first one
}

// unprompted says that a request at this stage is one that no event asked for.
func (s stage) unprompted() bool {
	return s.waiting || s.wake == lockclient.WakePoll || s.wake == lockclient.WakeFallback
}

func newTraffic(m emitter) *traffic {
	return &traffic{emitter: m, stage: map[string]stage{}, wakes: map[leaseID]lockclient.Wake{}, handed: map[leaseID]bool{}}
}

// observer returns the hooks for the lock client.
func (t *traffic) observer() lockclient.Observer {
	return lockclient.Observer{
		Waiting: func(lock string) {
			t.set(lock, stage{waiting: true})
			t.emit(event{Kind: evWaiting, Lock: lock})
		},
		Woke: func(lock string, by lockclient.Wake) {
			t.set(lock, stage{wake: by})
			t.emit(event{Kind: evWoke, Lock: lock, By: string(by)})
		},
		Acquired: func(e lockclient.AcquiredEvent) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.stage[e.Name] = stage{}
			t.wakes[leaseID{e.Name, e.Token}] = e.Wake
		},
		Released: func(e lockclient.ReleasedEvent) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.handed[leaseID{e.Name, e.Token}] = e.HandedOver
		},
		Lost: func(e *lockclient.LostError) {
			t.emit(event{Kind: evLost, Lock: e.Name, Token: e.Token, By: string(e.Reason)})
		},
		Request: func(e lockclient.RequestEvent) {
			if e.Outcome == "refused" && (e.Op == "acquire" || e.Op == "take over") {
				t.emit(event{Kind: evRefused, Lock: e.Name, Op: e.Op, FirstLook: t.at(e.Name) == stage{}})
			}
		},
	}
}

func (t *traffic) set(lock string, s stage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stage[lock] = s
}

func (t *traffic) at(lock string) stage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stage[lock]
}

// wakeOf returns, once, what led to a lease.
func (t *traffic) wakeOf(lock string, token int64) lockclient.Wake {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := leaseID{lock, token}
	defer delete(t.wakes, id)
	return t.wakes[id]
}

// handedOver returns, once, whether a released lease went to a contender of this process.
func (t *traffic) handedOver(lock string, token int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := leaseID{lock, token}
	defer delete(t.handed, id)
	return t.handed[id]
}

// freeze ends the counting: contenders that are told to go do not wait any more.
func (t *traffic) freeze() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.frozen = true
}

// sent counts a request and returns a function that tells of it, with its outcome, if it
// was unprompted.
func (t *traffic) sent(key map[string]types.AttributeValue, op string) func(err error) {
	name, _ := key["key"].(*types.AttributeValueMemberS)
	if name == nil {
		return func(error) {}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests++
	s := t.stage[name.Value]
	if t.frozen || !s.unprompted() {
		return func(error) {}
	}
	by := string(s.wake)
	if s.waiting {
		by = "nothing"
	}
	return func(err error) {
		t.emit(event{Kind: evAsked, Lock: name.Value, Op: op, By: by, Won: op == "UpdateItem" && err == nil})
	}
}

func (t *traffic) total() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.requests
}

// countedDB is the DynamoDB client that the lock client gets.
type countedDB struct {
	*dynamodb.Client
	traffic *traffic
	table   string
}

func (c countedDB) GetItem(ctx context.Context, in *dynamodb.GetItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	done := c.count(in.TableName, in.Key, "GetItem")
	out, err := c.Client.GetItem(ctx, in, optFns...)
	done(err)
	return out, err
}

func (c countedDB) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	done := c.count(in.TableName, in.Key, "UpdateItem")
	out, err := c.Client.UpdateItem(ctx, in, optFns...)
	done(err)
	return out, err
}

func (c countedDB) count(table *string, key map[string]types.AttributeValue, op string) func(error) {
	if aws.ToString(table) != c.table {
		return func(error) {}
	}
	return c.traffic.sent(key, op)
}
