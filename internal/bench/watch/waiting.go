package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/lockstream/lockstream/lockevent"
	"github.com/lockstream/lockstream/streamwatcher"
)

// waiting is what it costs to wait, and not to.
type waiting struct {
	Waiters    int     `json:"waiters"`
	Seconds    float64 `json:"seconds"`
	GetRecords int64   `json:"get_records"`
	Dormant    int64   `json:"requests_while_dormant"`
	Month1     float64 `json:"usd_per_month_1_shard"`
	Month4     float64 `json:"usd_per_month_4_shards"`
}

const (
	waiters     = 1000
	waitFor     = 10 * time.Second
	idleAfter   = time.Second
	dormantFor  = 4 * time.Second
	pricePer    = 0.20 / 1e6
	monthSecond = 30 * 24 * 3600
)

// measureWaiting counts the calls of many waiters, and of none.
func measureWaiting(ctx context.Context, r *result) (err error) {
	b, err := newBed(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	var all, polls atomic.Int64
	w, err := b.watcher(250*time.Millisecond, func(o *streamwatcher.Options) {
		o.IdleAfter = idleAfter
		o.Observer.Request = func(string, error) { all.Add(1) }
		o.Observer.Poll = func(streamwatcher.Poll) { polls.Add(1) }
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close(context.Background())) }()
	watches := make([]lockevent.Watch, waiters)
	for i := range watches {
		watches[i] = w.Watch(fmt.Sprintf("lock-%d", i))
	}
	if err := w.Ready(ctx, watches[0]); err != nil {
		return err
	}
	before := polls.Load()
	time.Sleep(waitFor)
	r.Waiting = waiting{Waiters: waiters, Seconds: waitFor.Seconds(), GetRecords: polls.Load() - before}
	for _, wt := range watches {
		wt.Stop()
	}
	time.Sleep(2 * idleAfter)
	before = all.Load()
	time.Sleep(dormantFor)
	r.Waiting.Dormant = all.Load() - before
	r.Waiting.Month1 = monthSecond * 4 * pricePer
	r.Waiting.Month4 = 4 * r.Waiting.Month1
	fmt.Printf("waiting: %d waiters, %d GetRecords in %.0f s; %d requests while dormant; at most $%.2f a month for one shard, $%.2f for four\n",
		waiters, r.Waiting.GetRecords, r.Waiting.Seconds, r.Waiting.Dormant, r.Waiting.Month1, r.Waiting.Month4)
	r.bar(r.Waiting.GetRecords <= 250/6+2, "%d GetRecords in 10 s", r.Waiting.GetRecords)
	r.bar(r.Waiting.Dormant == 0, "%d requests while dormant", r.Waiting.Dormant)
	return nil
}
