package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/lockstream/lockstream/lockclient"
	"github.com/lockstream/lockstream/streamwatcher"
)

// worker is one process of the fleet.
type worker struct {
	setup
	emitter
	traffic  *traffic
	locks    *lockclient.Client
	watcher  *streamwatcher.Watcher // nil when contenders poll
	counters counters

	longHold chan struct{} // an order to keep the hot lock at the next acquire
	proceed  chan struct{} // the order to send the write of that hold
}

// workerMain runs a worker until it is told to stop or its supervisor is gone.
func workerMain(stdin io.Reader, stdout io.Writer) int {
	signal.Ignore(syscall.SIGPIPE) // without a supervisor it still gives its locks back
	commands := make(chan command)
	go func() { // ends with the process: a read of standard input cannot be cancelled
		defer close(commands)
		for dec := json.NewDecoder(stdin); ; {
			var c command
			if dec.Decode(&c) != nil {
				return
			}
			commands <- c
		}
	}()
	start, ok := <-commands
	if !ok || start.Setup == nil {
		fmt.Fprintln(os.Stderr, "fleet worker: no set-up on standard input; start the program without arguments")
		return 1
	}
	m := emitter{stdout}
	w, err := connect(context.Background(), *start.Setup, m)
	if err == nil {
		err = w.serve(commands)
	}
	if err != nil {
		m.emit(event{Kind: evFailed, Text: err.Error()})
		return 1
	}
	return 0
}

// connect makes the clients, as any program would: endpoint, Region and credentials are
// those of the environment.
func connect(ctx context.Context, s setup, m emitter) (*worker, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	db := dynamodb.NewFromConfig(cfg)
	w := &worker{
		setup: s, emitter: m, traffic: newTraffic(m),
		counters: counters{db: db, table: s.CounterTable},
		longHold: make(chan struct{}, 1), proceed: make(chan struct{}, 1),
	}
	if !s.Polling {
		w.watcher, err = streamwatcher.New(db, dynamodbstreams.NewFromConfig(cfg), s.LockTable, func(o *streamwatcher.Options) {
			o.PollInterval = watcherPoll
		})
		if err != nil {
			return nil, err
		}
	}
	w.locks, err = lockclient.New(countedDB{db, w.traffic, s.LockTable}, s.LockTable, func(o *lockclient.Options) {
		o.LeaseDuration = lease
		o.Label = workerName(s.ID)
		o.PollInterval = pollInterval
		o.ReadyWait = time.Second // patient, because the machine may be busy with the whole fleet
		o.Observer = w.traffic.observer()
		if w.watcher != nil { // a nil *Watcher in the interface would not be nil
			o.Notifier = w.watcher
		}
	})
	return w, err
}

func workerName(id int) string { return fmt.Sprintf("worker %d", id) }

// serve obeys until the order to stop, or until the supervisor is gone.
func (w *worker) serve(commands <-chan command) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := w.awaitWatcher(ctx); err != nil {
		return err
	}
	w.emit(event{Kind: evReady})

	var contenders sync.WaitGroup
	orphan := true
	for c := range commands {
		switch c.Do {
		case orderRun:
			for _, c := range w.Contentions {
				for range c.Contenders {
					contenders.Go(func() { w.contend(ctx, c) })
				}
			}
		case orderHold:
			nudge(w.longHold)
		case orderWrite:
			nudge(w.proceed)
		case orderStop:
			orphan = false
		}
		if !orphan {
			break
		}
	}
	w.traffic.freeze()
	cancel()
	if !orphan { // present holds end in their own time
		contenders.Wait()
	}
	err := w.close()
	if orphan {
		return errors.Join(errors.New("standard input has ended: the supervisor is gone"), err)
	}
	w.emit(event{Kind: evBye, Requests: w.traffic.total()})
	return err
}

// awaitWatcher starts the watcher and waits until it reads the stream, so that the
// contenders' first waits already have it.
func (w *worker) awaitWatcher(ctx context.Context) error {
	if w.watcher == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	watch := w.watcher.Watch(hotLock)
	defer watch.Stop()
	return w.watcher.Ready(ctx, watch)
}

// close releases what is held, then ends the watcher.
func (w *worker) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit-time.Second)
	defer cancel()
	err := w.locks.Close(ctx)
	if w.watcher != nil {
		err = errors.Join(err, w.watcher.Close(ctx))
	}
	return err
}

// nudge leaves a message in a channel of capacity 1, unless there is one.
func nudge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
