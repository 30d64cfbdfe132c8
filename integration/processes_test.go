package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/lockstream/lockstream/lockclient"
	"github.com/lockstream/lockstream/streamwatcher"
)

// The test binary is its own worker process: with this variable set it contends for the
// lock instead of running tests.
const workerEnv = "LOCKSTREAM_TEST_WORKER"

func TestMain(m *testing.M) {
	if table := os.Getenv(workerEnv); table != "" {
		if err := work(table); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// report is a line that a worker prints for each hold.
type report struct {
	Token int64
	Stuck bool // it holds, and goes on holding until it is killed
}

const holdsPerContender = 5

// work contends for one lock with four goroutines. Each hold adds one to a counter in a
// transaction with the held check. The last word of a worker that is told to get stuck
// comes from within a hold.
func work(table string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	db := dynamodb.NewFromConfig(cfg)
	w, err := streamwatcher.New(db, dynamodbstreams.NewFromConfig(cfg), table, func(o *streamwatcher.Options) { o.PollInterval = pollInterval })
	if err != nil {
		return err
	}
	c, err := lockclient.New(db, table, func(o *lockclient.Options) { o.Notifier, o.LeaseDuration = w, 2*time.Second })
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	var mu sync.Mutex
	say := func(r report) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(r)
	}
	stuckAt, _ := strconv.Atoi(os.Getenv(workerEnv + "_STUCK"))
	var contenders sync.WaitGroup
	errs := make(chan error, 4)
	holds := 0
	for range 4 {
		contenders.Go(func() {
			for range holdsPerContender {
				errs := errs
				err := c.Do(ctx, "hot", func(ctx context.Context) error {
					l, _ := lockclient.LeaseFromContext(ctx)
					if holds++; holds == stuckAt { // the lock guards it
						say(report{Token: l.FencingToken(), Stuck: true})
						select {}
					}
					if err := count(ctx, db, table, l); err != nil {
						return err
					}
					say(report{Token: l.FencingToken()})
					return nil
				})
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	contenders.Wait()
	close(errs)
	err = errors.Join(<-errs, c.Close(ctx), w.Close(ctx))
	return err
}

func count(ctx context.Context, db *dynamodb.Client, table string, l *lockclient.Lease) error {
	_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		l.HeldCheck(),
		{Update: &types.Update{
			TableName: aws.String(table + "-counter"), Key: map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "hot"}},
			UpdateExpression: aws.String("ADD #n :one"), ExpressionAttributeNames: map[string]string{"#n": "n"},
			ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
		}},
	}})
	return err
}

// TestProcessesContendAndOneIsKilled: four processes with four contenders each share one
// lock; one of them is killed in mid-hold. No hold is lost or doubled, tokens rise, and
// the killed one's lock is taken over.
//
// Cases: D2
func TestProcessesContendAndOneIsKilled(t *testing.T) {
	b := newBed(t)
	_, err := b.db().CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(b.table + "-counter"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var tokens []int64
	var stuck int64
	var workers sync.WaitGroup
	for i := range 4 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), b.e.Environ()...)
		cmd.Env = append(cmd.Env, workerEnv+"="+b.table)
		if i == 0 {
			cmd.Env = append(cmd.Env, workerEnv+"_STUCK=3")
		}
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		workers.Go(func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				var r report
				if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
					t.Errorf("worker %d: %v in %q", i, err, lines.Text())
				}
				mu.Lock()
				if r.Stuck {
					stuck = r.Token
					_ = cmd.Process.Kill()
				} else {
					tokens = append(tokens, r.Token)
				}
				mu.Unlock()
			}
			if err := cmd.Wait(); err != nil && i != 0 {
				t.Errorf("worker %d: %v", i, err)
			}
		})
	}
	workers.Wait()
	if want := 3*4*holdsPerContender + 2; len(tokens) != want || stuck == 0 {
		t.Errorf("%d holds, want %d; the killed one's token %d", len(tokens), want, stuck)
	}
	seen := map[int64]bool{stuck: true}
	for _, token := range tokens {
		if seen[token] {
			t.Errorf("token %d twice", token)
		}
		seen[token] = true
	}
	out, err := b.db().GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(b.table + "-counter"), Key: map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "hot"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := out.Item["n"].(*types.AttributeValueMemberN); !ok || n.Value != strconv.Itoa(len(tokens)) {
		t.Errorf("the counter is %+v after %d acknowledged holds", out.Item, len(tokens))
	}
}
