package integration

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/lockclient"
)

// TestMisconfigurationIsOneClearError goes through the ways in which a first use fails:
// each gives one typed error that names operation, table and Region (where there is one),
// within the context's time, and a plain text.
//
// Cases: N3, N5, L4
func TestMisconfigurationIsOneClearError(t *testing.T) {
	b := newBed(t)
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
	keys := credentials.NewStaticCredentialsProvider("id", "secret", "")
	deaf, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()

	for _, tc := range []struct {
		name   string
		table  string
		opt    dynamodb.Options
		schema lockclient.Schema
		want   error
		text   string
	}{
		{name: "missing table", table: "nowhere", opt: dynamodb.Options{Region: "eu-west-1", Credentials: keys, BaseEndpoint: aws.String(b.e.Endpoint())}, want: lockclient.ErrNoTable, text: "nowhere"},
		{name: "other key schema", table: b.table, opt: dynamodb.Options{Region: "eu-west-1", Credentials: keys, BaseEndpoint: aws.String(b.e.Endpoint())}, schema: lockclient.Schema{Partition: "pk"}, want: lockclient.ErrSchema},
		{name: "endpoint that does not answer", table: b.table, opt: dynamodb.Options{Region: "eu-west-1", Credentials: keys, BaseEndpoint: aws.String("http://" + deaf.Addr().String())}, want: context.DeadlineExceeded, text: "deadline exceeded"},
		{name: "nobody at the endpoint", table: b.table, opt: dynamodb.Options{Region: "eu-west-1", Credentials: keys, BaseEndpoint: aws.String("http://" + closed.Addr().String())}, text: "refused"},
		{name: "no region", table: b.table, opt: dynamodb.Options{Credentials: keys}, text: "egion"},
		{name: "no credentials", table: b.table, opt: noCredentials(t, b), text: "credentials"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := lockclient.New(dynamodb.New(tc.opt), tc.table, func(o *lockclient.Options) { o.Schema = tc.schema })
			if err != nil {
				t.Fatal(err)
			}
			defer closeSoon(t, c.Close)
			for op, call := range map[string]func(context.Context) error{
				"acquire": func(ctx context.Context) error { _, err := c.Acquire(ctx, "orders"); return err },
				"try":     func(ctx context.Context) error { _, err := c.TryAcquire(ctx, "orders"); return err },
				"within a Do": func(ctx context.Context) error {
					return c.Do(ctx, "orders", func(context.Context) error { return nil })
				},
			} {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				start := time.Now()
				err := call(ctx)
				took := time.Since(start)
				cancel()
				var e *lockclient.Error
				if !errors.As(err, &e) || e.Op != "acquire" || e.Table != tc.table || e.Region != tc.opt.Region || e.Lock != "orders" {
					t.Fatalf("%s: %v (%T)", op, err, err)
				}
				if tc.want != nil && !errors.Is(err, tc.want) {
					t.Errorf("%s: %v is not %v", op, err, tc.want)
				}
				if errors.Is(err, lockclient.ErrHeld) || !strings.Contains(err.Error(), tc.text) {
					t.Errorf("%s: %v", op, err)
				}
				if took > 2500*time.Millisecond {
					t.Errorf("%s: hung for %v past its context", op, took)
				}
				if op == "acquire" {
					t.Log(err)
				}
			}
		})
	}
}

func noCredentials(t *testing.T, b *bed) dynamodb.Options {
	t.Helper()
	cfg, err := config.LoadDefaultConfig(t.Context(), config.WithRegion("eu-west-1"))
	if err != nil {
		t.Fatal(err)
	}
	return dynamodb.Options{Region: "eu-west-1", Credentials: cfg.Credentials, BaseEndpoint: aws.String(b.e.Endpoint())}
}

// TestOrdinaryItemUnderTheKey is refused and left as it is.
//
// Cases: L6
func TestOrdinaryItemUnderTheKey(t *testing.T) {
	b := newBed(t)
	_, err := b.db().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.table, Item: map[string]types.AttributeValue{
		"key": &types.AttributeValueMemberS{Value: "user-1"}, "email": &types.AttributeValueMemberS{Value: "x"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	c := b.client()
	if _, err := c.Acquire(t.Context(), "user-1"); !errors.Is(err, lockclient.ErrNotALock) {
		t.Errorf("%v", err)
	}
	b.raw("user-1").expect(t, "after the refusal", raw{"key": "S user-1", "email": "S x"})
}
