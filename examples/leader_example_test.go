package examples_test

import (
	"context"
	"fmt"
	"log"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/lockstream/lockstream/lockclient"
	"github.com/lockstream/lockstream/streamwatcher"
)

// A service leads as long as it runs. In a real one ctx is signal.NotifyContext's, and a
// standby waits in Run without a request until its turn comes.
func Example_leader() {
	ctx, shutdown := context.WithCancel(context.Background())
	defer shutdown()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	db := dynamodb.NewFromConfig(cfg)
	watcher, err := streamwatcher.New(db, dynamodbstreams.NewFromConfig(cfg), "leaders")
	if err != nil {
		log.Fatal(err)
	}
	defer watcher.Close(context.Background())
	client, err := lockclient.New(db, "leaders", func(o *lockclient.Options) {
		o.Notifier, o.Label = watcher, "replica-1"
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	if _, err := client.EnsureTable(ctx); err != nil {
		log.Fatal(err)
	}
	elector, err := lockclient.NewElector(client, "mail-queue")
	if err != nil {
		log.Fatal(err)
	}
	stopped := make(chan error)
	go func() {
		stopped <- elector.Run(ctx, func(ctx context.Context) error {
			lease, _ := lockclient.LeaseFromContext(ctx)
			fmt.Println("leading, fenced by a token:", lease.FencingToken() > 0)
			<-ctx.Done() // leadership has ended, or the service shuts down
			return nil
		})
	}()
	for leader, err := range elector.Leaders(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if leader.Self {
			fmt.Println(leader.Label, "leads:", elector.IsLeader())
			break
		}
	}
	shutdown()
	fmt.Println(<-stopped != nil, elector.IsLeader()) // the work has returned, the lock is free
	_, err = elector.Leader(context.Background())
	fmt.Println(err)
	// Unordered output:
	// leading, fenced by a token: true
	// replica-1 leads: true
	// true false
	// lockclient: lead "mail-queue" in table "leaders" (us-east-1): nobody leads
}
