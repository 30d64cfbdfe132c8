package lockclient

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/internal/lockattr"
)

func (w *world) tableClient(table string, optFns ...func(*Options)) *Client {
	w.t.Helper()
	c, err := New(w.server.Client(), table, optFns...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = append(w.open, c)
	return c
}

// Cases: N3, I2
//
// Ten processes at once: one table, active, no error, TTL on the name
// that the code writes.
func TestEnsureTableByTenProcessesAtOnce(t *testing.T) {
	bubble(t, func(w *world) {
		w.server.SetTableDelay(3 * time.Second)
		var mu sync.Mutex
		created := 0
		var all sync.WaitGroup
		for range 10 {
			c := w.tableClient("fresh")
			all.Go(func() {
				r, err := c.EnsureTable(w.ctx)
				if err != nil {
					t.Error(err)
				}
				if len(r.Missing) > 0 || r.StreamARN == "" {
					t.Errorf("%+v", r)
				}
				mu.Lock()
				defer mu.Unlock()
				if r.Created {
					created++
				}
			})
		}
		all.Wait()
		if created != 1 {
			t.Errorf("created by %d processes", created)
		}
		out, err := w.server.API().DescribeTable(w.ctx, &dynamodb.DescribeTableInput{TableName: aws.String("fresh")})
		if err != nil || out.Table.TableStatus != types.TableStatusActive || out.Table.StreamSpecification.StreamViewType != types.StreamViewTypeNewAndOldImages {
			t.Errorf("%+v %v", out, err)
		}
		ttl, err := w.server.API().DescribeTimeToLive(w.ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String("fresh")})
		if err != nil || aws.ToString(ttl.TimeToLiveDescription.AttributeName) != lockattr.TTL {
			t.Errorf("%+v %v", ttl, err)
		}
		w.release(w.acquire(w.tableClient("fresh"), "orders"))
	})
}

// Cases: N2
func TestEnsureTableNeedsNoPermissionToCreateWhatIsThere(t *testing.T) {
	bubble(t, func(w *world) {
		if _, err := w.tableClient("there").EnsureTable(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.server.Intercept(func(_ context.Context, r *fakedynamo.Request) fakedynamo.Fault {
			if strings.HasPrefix(r.Op, "Describe") {
				return fakedynamo.Fault{}
			}
			return fakedynamo.Fault{Error: &fakedynamo.APIError{Code: "AccessDeniedException", Message: "not authorized to perform dynamodb:" + r.Op}}
		})
		if r, err := w.tableClient("there").EnsureTable(w.ctx); err != nil || r.Created {
			t.Errorf("%+v %v", r, err)
		}
		_, err := w.tableClient("absent").EnsureTable(w.ctx)
		if err == nil || !strings.Contains(err.Error(), "dynamodb:CreateTable") || !strings.Contains(err.Error(), "absent") {
			t.Errorf("%v", err)
		}
	})
}

func TestEnsureTableChangesAnExistingTableOnlyToRepair(t *testing.T) {
	bubble(t, func(w *world) {
		plain := func(name string) {
			_, err := w.server.API().CreateTable(w.ctx, &dynamodb.CreateTableInput{
				TableName: aws.String(name), BillingMode: types.BillingModePayPerRequest,
				AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: types.ScalarAttributeTypeS}},
				KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: types.KeyTypeHash}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		plain("plain")
		c := w.tableClient("plain")
		for range 2 {
			r, err := c.EnsureTable(w.ctx)
			if err != nil || !slices.Equal(r.Missing, []string{"stream", "ttl"}) || r.StreamARN != "" {
				t.Errorf("%+v %v", r, err)
			}
		}
		r, err := c.EnsureTable(w.ctx, func(o *EnsureOptions) { o.Repair = true })
		if err != nil || !slices.Equal(r.Repaired, []string{"stream", "ttl"}) || len(r.Missing) > 0 || r.StreamARN == "" {
			t.Errorf("%+v %v", r, err)
		}
		r, err = c.EnsureTable(w.ctx, func(o *EnsureOptions) { o.Repair = true })
		if err != nil || len(r.Repaired) > 0 {
			t.Errorf("repaired again: %+v %v", r, err)
		}
		plain("shared")
		r, err = w.tableClient("shared", func(o *Options) { o.SharedTable = true }).EnsureTable(w.ctx, func(o *EnsureOptions) { o.NoStream = true })
		if err != nil || len(r.Missing) > 0 {
			t.Errorf("a shared table without stream lacks nothing: %+v %v", r, err)
		}
	})
}

// Cases: L4
func TestEnsureTableTellsAnotherSchemaApart(t *testing.T) {
	bubble(t, func(w *world) {
		for name, schema := range map[string]Schema{
			"other-key": {Partition: "pk"},
			"with-sort": {Sort: "sk", SortValue: "lock"},
		} {
			c := w.tableClient(testTable, func(o *Options) { o.Schema = schema })
			_, err := c.EnsureTable(w.ctx)
			wantErr(t, err, ErrSchema)
			if err == nil || !strings.Contains(err.Error(), "expected") || !strings.Contains(err.Error(), "HASH key (S)") {
				t.Errorf("%s: %v", name, err)
			}
			// Without EnsureTable the first acquire says so, after one request.
			w.server.Requests().Reset()
			_, err = c.Acquire(w.ctx, "orders")
			wantErr(t, err, ErrSchema)
			if n := w.server.Requests().Total(); n != 1 {
				t.Errorf("%s: %d requests", name, n)
			}
		}
	})
}

// Cases: L5
//
// Partition and sort key with a constant value, a prefix, a table of an
// application's own items, and several tables and clients in one process.
func TestLocksInAnApplicationsTable(t *testing.T) {
	bubble(t, func(w *world) {
		schema := func(o *Options) {
			o.Schema = Schema{Partition: "pk", Sort: "sk", SortValue: "LOCK"}
			o.KeyPrefix = "lock#"
		}
		a, b := w.tableClient("app", schema), w.tableClient("app", schema)
		if _, err := a.EnsureTable(w.ctx); err != nil {
			t.Fatal(err)
		}
		other := w.client()
		l := w.acquire(a, "orders")
		elsewhere := w.acquire(other, "orders")
		if _, err := b.TryAcquire(w.ctx, "orders"); err == nil {
			t.Error("two holders")
		}
		m := w.server.Item("app", map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: "lock#orders"}, "sk": &types.AttributeValueMemberS{Value: "LOCK"},
		})
		if m == nil {
			t.Error("the item is not where it belongs")
		}
		w.release(l)
		w.release(w.acquire(b, "orders"))
		w.release(elsewhere)
	})
}

func TestEnsureTableEndsWithItsContext(t *testing.T) {
	bubble(t, func(w *world) {
		w.server.SetTableDelay(time.Hour)
		ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
		defer cancel()
		_, err := w.tableClient("slow").EnsureTable(ctx)
		wantErr(t, err, context.DeadlineExceeded)
		if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%q", "slow")) {
			t.Errorf("%v", err)
		}
	})
}
