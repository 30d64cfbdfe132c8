package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstream/lockstream/lockclient"
	"github.com/lockstream/lockstream/lockclient/locktest"
)

// RunNightly is the code under test: it works while it holds a lock.
func RunNightly(ctx context.Context, locks lockclient.Locker) error {
	return locks.Do(ctx, "nightly", func(ctx context.Context, h lockclient.Hold) error {
		fmt.Println("working")
		return ctx.Err()
	})
}

// The code waits while another process holds the lock.
func Example() {
	t := newExampleT() // in a test: its own t
	defer t.end()

	table := locktest.New(t)
	other := table.Hold("nightly")
	done := make(chan error)
	go func() { done <- RunNightly(context.Background(), table.Client().Locker()) }()

	table.TurnedAway("nightly")
	fmt.Println("waiting")
	other.Release()
	fmt.Println(<-done, table.State("nightly").Status)
	// Output:
	// waiting
	// working
	// <nil> released
}

// The answer to the acquire is lost, but not the lock: the client finds its own write.
func ExampleTable_Next() {
	t := newExampleT() // in a test: its own t
	defer t.end()

	table := locktest.New(t)
	client := table.Client(func(o *lockclient.Options) {
		o.LeaseDuration = time.Second // waits a quarter of it for the lost answer
		o.Observer.Recovered = func(op, name string) { fmt.Println("recovered:", op, name) }
	})
	first, _ := client.Acquire(context.Background(), "orders")
	_ = first.Release(context.Background())

	table.Next(1, locktest.LoseAnswer)
	lease, err := client.Acquire(context.Background(), "orders")
	fmt.Println(err, lease.Valid(), table.State("orders").Token == lease.FencingToken())
	// Output:
	// recovered: acquire orders
	// <nil> true true
}

// The code is told when its lock is taken from it.
func ExampleTable_TakeOver() {
	t := newExampleT() // in a test: its own t
	defer t.end()

	table := locktest.New(t)
	client := table.Client()
	lease, _ := client.Acquire(context.Background(), "orders")

	other := table.TakeOver("orders", func(o *locktest.HoldOptions) { o.Label = "the other one" })
	err := lease.Renew(context.Background(), nil) // or by itself, within a third of the lease
	var lost *lockclient.LostError
	fmt.Println(errors.As(err, &lost), lost.Reason, lost.By)
	fmt.Println(other.FencingToken() > lease.FencingToken())
	// Output:
	// true taken over the other one
	// true
}
