package integration

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/lockclient"
	"github.com/lockstream/lockstream/lockclient/locktest"
)

// TestClientKeepsTheLockerContract holds clients that watch the stream, each with a watcher
// of its own, to the contract that they keep on the table in memory.
func TestClientKeepsTheLockerContract(t *testing.T) {
	shared := newBed(t)
	locktest.TestLocker(t, func(t *testing.T) locktest.Backend {
		b := *shared
		b.t = t // what the part makes ends with it
		waits := make(chan string, 1024)
		return locktest.Backend{
			Process: func() lockclient.Locker {
				return b.client(func(o *lockclient.Options) {
					o.LeaseDuration, o.Notifier = 2*time.Second, b.watcher()
					o.Observer.Waiting = func(name string) { waits <- name }
				}).Locker()
			},
			Lose:    b.remove,
			Waiting: func(name string) { awaitWait(t, waits, name) },
		}
	})
}

// remove deletes a lock's item, held or not.
func (b *bed) remove(name string) {
	b.t.Helper()
	_, err := b.db().DeleteItem(b.t.Context(), &dynamodb.DeleteItemInput{
		TableName: aws.String(b.table), Key: map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: name}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// awaitWait returns when a wait for name has begun.
func awaitWait(t *testing.T, waits <-chan string, name string) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		select {
		case begun := <-waits:
			if begun == name {
				return
			}
		case <-timeout:
			t.Fatalf("nobody waits for %q", name)
		}
	}
}
