package lockclient

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/internal/lockattr"
)

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Cases: M4
func TestReleaseCarriesDataAndAttributes(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		l := w.acquire(a, "orders")
		w.server.Requests().Reset()
		heir := w.goAcquire(w.ctx, a, "orders") // gets it with the data, not before
		err := l.Release(w.ctx, func(o *ReleaseOptions) {
			o.Data = []byte("done")
			o.Attributes = map[string]types.AttributeValue{"last-run.at": text("noon"), "status": text("ok"), "size": &types.AttributeValueMemberN{Value: "7"}}
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := w.requests("UpdateItem"); n != 1 {
			t.Errorf("%d writes for one release", n)
		}
		next := heir.mustHold(t)
		m := w.server.Item(testTable, a.layout.Key("orders"))
		if string(next.Data()) != "done" || m["last-run.at"].(*types.AttributeValueMemberS).Value != "noon" || m["size"] == nil || m["status"] == nil {
			t.Errorf("data %q, item %v", next.Data(), m)
		}
		n := w.server.Requests().Total()
		for _, attr := range append(lockattr.All(), "key", "") {
			err := next.Release(w.ctx, func(o *ReleaseOptions) {
				o.Attributes = map[string]types.AttributeValue{attr: text("1")}
			})
			wantErr(t, err, ErrInvalidOption)
		}
		err = next.Release(w.ctx, func(o *ReleaseOptions) { o.Attributes = map[string]types.AttributeValue{"x": nil} })
		wantErr(t, err, ErrInvalidOption)
		if w.server.Requests().Total() != n || !next.Valid() {
			t.Error("a refused release sent something or ended the lease")
		}
		w.release(next)
	})
}

// Cases: M1, M2
func TestNewerDataAndOthersAttributesSurvive(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client()
		l := w.acquire(a, "orders", func(o *AcquireOptions) { o.Data = []byte("v0") })
		m := w.server.Item(testTable, a.layout.Key("orders"))
		m["owned-by"] = text("team")
		if err := w.server.PutRaw(testTable, m); err != nil {
			t.Fatal(err)
		}
		// An old renewal that arrives late, behind a newer one.
		w.fault("UpdateItem", 1, fakedynamo.Fault{ApplyLate: 5 * time.Second})
		ctx, cancel := context.WithTimeout(w.ctx, 20*time.Millisecond)
		defer cancel()
		if err := l.Renew(ctx, []byte("v1")); err == nil {
			t.Error("renewed without an answer")
		}
		if err := l.Renew(w.ctx, []byte("v2")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second) // automatic renewals carry nothing old either
		if got := string(w.item("orders").Data); got != "v2" {
			t.Errorf("data %q", got)
		}
		crash(a)
		taken := w.acquire(b, "orders")
		if got := string(taken.Data()); got != "v2" {
			t.Errorf("after the takeover %q", got)
		}
		w.release(taken)
		m = w.server.Item(testTable, a.layout.Key("orders"))
		if m["owned-by"] == nil || string(w.item("orders").Data) != "v2" {
			t.Errorf("after the release %v", m)
		}
	})
}

// Cases: L4, L5
func TestSchemaOf(t *testing.T) {
	bubble(t, func(w *world) {
		create := func(name string, sort string, kind types.ScalarAttributeType) {
			in := &dynamodb.CreateTableInput{
				TableName: aws.String(name), BillingMode: types.BillingModePayPerRequest,
				AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: kind}},
				KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
			}
			if sort != "" {
				in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &sort, AttributeType: types.ScalarAttributeTypeS})
				in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &sort, KeyType: types.KeyTypeRange})
			}
			if _, err := w.server.API().CreateTable(w.ctx, in); err != nil {
				t.Fatal(err)
			}
		}
		create("app", "sk", types.ScalarAttributeTypeS)
		create("numbers", "", types.ScalarAttributeTypeN)
		schema, err := SchemaOf(w.ctx, w.server.Client(), "app")
		if err != nil || schema != (Schema{Partition: "pk", Sort: "sk"}) {
			t.Fatalf("%+v, %v", schema, err)
		}
		schema.SortValue = "LOCK"
		c := w.tableClient("app", func(o *Options) { o.Schema = schema })
		w.release(w.acquire(c, "orders"))
		_, err = SchemaOf(w.ctx, w.server.Client(), "numbers")
		wantErr(t, err, ErrSchema)
		if err == nil || !strings.Contains(err.Error(), "HASH pk (N)") {
			t.Errorf("%v", err)
		}
		_, err = SchemaOf(w.ctx, w.server.Client(), "absent")
		wantErr(t, err, ErrNoTable)
		if err == nil || !strings.Contains(err.Error(), "absent") || !strings.Contains(err.Error(), "us-east-1") {
			t.Errorf("%v", err)
		}
		for _, bad := range []Schema{{Partition: "pk", Sort: "sk"}, {Partition: "pk", Sort: "sk", SortValue: strings.Repeat("s", 1025)}} {
			_, err = New(w.server.Client(), "app", func(o *Options) { o.Schema = bad })
			wantErr(t, err, ErrInvalidOption)
		}
		long := w.tableClient("app", func(o *Options) {
			o.Schema = Schema{Partition: "pk", Sort: "sk", SortValue: strings.Repeat("s", 1024)}
		})
		w.release(w.acquire(long, "orders"))
	})
}
