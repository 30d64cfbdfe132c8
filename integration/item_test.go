package integration

import (
	"bytes"
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/lockclient"
)

// raw is an item as the bare SDK shows it: type and value of every attribute.
type raw map[string]string

func (b *bed) raw(name string) raw {
	b.t.Helper()
	out, err := b.db().GetItem(b.t.Context(), &dynamodb.GetItemInput{
		TableName: &b.table, ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: name}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	r := raw{}
	for attr, v := range out.Item {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			r[attr] = "S " + v.Value
		case *types.AttributeValueMemberN:
			r[attr] = "N " + v.Value
		case *types.AttributeValueMemberB:
			r[attr] = "B " + string(v.Value)
		default:
			b.t.Errorf("%s has an unexpected type: %#v", attr, v)
		}
	}
	return r
}

// number is the attribute's value where it is a number.
func (r raw) number(t *testing.T, attr string) int64 {
	t.Helper()
	text, ok := bytes.CutPrefix([]byte(r[attr]), []byte("N "))
	n, err := strconv.ParseInt(string(text), 10, 64)
	if !ok || err != nil {
		t.Errorf("%s is no integer: %q", attr, r[attr])
	}
	return n
}

// expect compares an item's attributes with those wanted; "*" stands for any value, and
// no attribute may be missing or more.
func (r raw) expect(t *testing.T, state string, want raw) {
	t.Helper()
	for attr, v := range want {
		if got, ok := r[attr]; !ok || v != "*" && got != v {
			t.Errorf("%s: %s is %q, want %q", state, attr, got, v)
		}
	}
	for attr, v := range r {
		if _, ok := want[attr]; !ok {
			t.Errorf("%s: %s = %q should not be there", state, attr, v)
		}
	}
}

func near(t *testing.T, what string, got, want time.Time) {
	t.Helper()
	if d := got.Sub(want).Abs(); d > 3*time.Second {
		t.Errorf("%s is %v, %v from %v", what, got, d, want)
	}
}

// TestItemAttributeByAttribute reads what every operation has written with the bare SDK
// and compares it with the item's page, attribute by attribute.
//
// Cases: I1
func TestItemAttributeByAttribute(t *testing.T) {
	b := newBed(t)
	c := b.client(func(o *lockclient.Options) { o.Label = "host/1" })
	l := hold(t, c, "orders", func(o *lockclient.AcquireOptions) { o.Data = []byte("payload") })
	now := time.Now()
	acquired := b.raw("orders")
	held := raw{
		"key": "S orders", "ownerName": "*", "leaseDuration": "S 20000", "recordVersionNumber": "*", "data": "B payload",
		"fencingToken": "N " + strconv.FormatInt(l.FencingToken(), 10), "holderLabel": "S host/1", "acquiredAt": "*",
		"leaseUntil": "*", "ttl": "*", "lockOp": "S acquire",
	}
	acquired.expect(t, "acquired", held)
	near(t, "acquiredAt", time.UnixMilli(acquired.number(t, "acquiredAt")), now)
	near(t, "leaseUntil", time.UnixMilli(acquired.number(t, "leaseUntil")), now.Add(20*time.Second))
	near(t, "ttl", time.Unix(acquired.number(t, "ttl"), 0), now.Add(20*time.Second+time.Hour))
	near(t, "fencingToken", time.UnixMicro(acquired.number(t, "fencingToken")), now)

	if err := l.Renew(t.Context(), []byte("renewed")); err != nil {
		t.Fatal(err)
	}
	renewed := b.raw("orders")
	held["data"], held["lockOp"] = "B renewed", "S renew"
	held["ownerName"], held["acquiredAt"] = acquired["ownerName"], acquired["acquiredAt"]
	renewed.expect(t, "renewed", held)
	if renewed["recordVersionNumber"] == acquired["recordVersionNumber"] {
		t.Error("a renewal without a new version")
	}

	got := make(chan *lockclient.Lease, 1)
	go func() {
		next, err := c.Acquire(t.Context(), "orders", func(o *lockclient.AcquireOptions) { o.Label, o.LeaseDuration = "second", 30*time.Second })
		if err != nil {
			t.Error(err)
		}
		got <- next
	}()
	waitUntilQueued(t, c)
	release(t, l)
	next := <-got
	handed := b.raw("orders")
	held["lockOp"], held["holderLabel"], held["leaseDuration"] = "S handover", "S second", "S 30000"
	held["ownerName"], held["acquiredAt"] = "*", "*"
	held["fencingToken"] = "N " + strconv.FormatInt(l.FencingToken()+1, 10)
	handed.expect(t, "handed over", held)
	if handed["ownerName"] == acquired["ownerName"] || next.FencingToken() != l.FencingToken()+1 {
		t.Errorf("owner %q, token %d after %d", handed["ownerName"], next.FencingToken(), l.FencingToken())
	}

	release(t, next)
	released := b.raw("orders")
	released.expect(t, "released", raw{
		"key": "S orders", "ownerName": handed["ownerName"], "leaseDuration": "S 30000", "recordVersionNumber": "*", "data": "B renewed",
		"isReleased": "S 1", "fencingToken": held["fencingToken"], "holderLabel": "S second", "acquiredAt": handed["acquiredAt"],
		"ttl": "*", "lockOp": "S release",
	})
	near(t, "ttl", time.Unix(released.number(t, "ttl"), 0), time.Now().Add(time.Hour))
}

// TestForeignAttributesSurvive shows that every write is an update and none a put.
//
// Cases: M1
func TestForeignAttributesSurvive(t *testing.T) {
	b := newBed(t)
	db := &mortal{DynamoDBAPI: b.db()}
	c, err := lockclient.New(db, b.table, func(o *lockclient.Options) { o.LeaseDuration = time.Second })
	if err != nil {
		t.Fatal(err)
	}
	l := hold(t, c, "orders")
	_, err = b.db().UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &b.table, Key: map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "orders"}},
		UpdateExpression:         aws.String("SET #note = :note"),
		ExpressionAttributeNames: map[string]string{"#note": "note"}, ExpressionAttributeValues: map[string]types.AttributeValue{":note": &types.AttributeValueMemberS{Value: "theirs"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	check := func(state string) {
		t.Helper()
		if got := b.raw("orders")["note"]; got != "S theirs" {
			t.Errorf("%s: the note is %q", state, got)
		}
	}
	if err := l.Renew(t.Context(), nil); err != nil {
		t.Error(err)
	}
	check("renewed")
	release(t, l)
	check("released")
	l = hold(t, c, "orders")
	check("acquired again")
	db.dead.Store(true)
	hold(t, b.client(), "orders")
	check("taken over")
	<-l.Done()
	closeSoon(t, c.Close)
}

// waitUntilQueued returns when a contender waits behind a lease of the same client. That
// sends nothing, so there is no event to wait for.
func waitUntilQueued(t *testing.T, c *lockclient.Client) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if c.Stats().Contenders > 0 {
			return
		}
	}
	t.Fatal("nobody queued")
}

// mortal is a table that a client can be cut off from, as when its process is killed.
type mortal struct {
	lockclient.DynamoDBAPI
	dead atomic.Bool
}

func (m *mortal) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, fns ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if m.dead.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return m.DynamoDBAPI.UpdateItem(ctx, in, fns...)
}
