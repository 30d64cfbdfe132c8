package integration

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/emulator/emulatortest"
	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/internal/lockattr"
	"github.com/lockstream/lockstream/internal/lockitem"
)

// The states that an operation may find. Every one has version "R1" and token 100 where
// it has any.
func states() map[string]map[string]types.AttributeValue {
	s := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	n := func(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
	held := map[string]types.AttributeValue{
		lockattr.RecordVersionNumber: s("R1"), lockattr.OwnerName: s("a#1"), lockattr.LeaseDuration: s("20000"),
		lockattr.FencingToken: n("100"), lockattr.TTL: n("1000"),
	}
	with := func(m map[string]types.AttributeValue, more map[string]types.AttributeValue) map[string]types.AttributeValue {
		m = maps.Clone(m)
		maps.Copy(m, more)
		return m
	}
	without := func(m map[string]types.AttributeValue, attr string) map[string]types.AttributeValue {
		m = maps.Clone(m)
		delete(m, attr)
		return m
	}
	released := with(held, map[string]types.AttributeValue{lockattr.IsReleased: s("1")})
	paused := map[string]types.AttributeValue{lockattr.Paused: s("maintenance")}
	return map[string]map[string]types.AttributeValue{
		"absent":           nil,
		"held":             held,
		"held, renewed":    with(held, map[string]types.AttributeValue{lockattr.RecordVersionNumber: s("R2")}),
		"held by another":  with(held, map[string]types.AttributeValue{lockattr.RecordVersionNumber: s("R2"), lockattr.OwnerName: s("b#1"), lockattr.FencingToken: n("150")}),
		"held, paused":     with(held, paused),
		"held, no token":   without(held, lockattr.FencingToken),
		"released":         released,
		"released, later":  with(released, map[string]types.AttributeValue{lockattr.RecordVersionNumber: s("R2"), lockattr.FencingToken: n("300")}),
		"released, paused": with(released, paused),
		"released, alien":  without(released, lockattr.FencingToken),
		"ordinary item":    {"email": s("x"), lockattr.IsReleased: s("1"), lockattr.FencingToken: n("1")},
	}
}

type expression struct {
	name string
	expr lockitem.Expr
	on   []string // the states on which it succeeds
}

func expressions() []expression {
	layout := lockitem.Layout{Partition: "key"}
	seen := lockitem.Version{RVN: "R1", Token: 100, HasToken: true}
	alien := lockitem.Version{RVN: "R1"}
	mine := lockitem.Hold{Owner: "a#1", RVN: "R1", Token: 100}
	grant := lockitem.Grant{Owner: "c#1", RVN: "R9", Token: 200, Label: "c", Lease: 20 * time.Second, AcquiredAt: time.UnixMilli(1), TTL: time.Unix(2000, 0)}
	touch := lockitem.Touch{RVN: "R9", Lease: 20 * time.Second, TTL: time.Unix(2000, 0)}
	return []expression{
		{"acquire, state unknown", lockitem.AcquireUnknown(layout, grant), []string{"absent", "released"}},
		{"acquire, released state known", lockitem.AcquireReleased(seen, grant), []string{"released"}},
		{"acquire, released by a foreign client", lockitem.AcquireReleased(alien, grant), []string{"released, alien"}},
		{"takeover", lockitem.Takeover(seen, grant), []string{"held"}},
		{"takeover of a foreign lease", lockitem.Takeover(alien, grant), []string{"held, no token"}},
		{"hand over", lockitem.HandOver(mine, grant), []string{"held"}},
		{"renew", lockitem.Renew(mine, touch), []string{"held", "held, paused"}},
		{"release", lockitem.Release(mine, touch), []string{"held", "held, paused"}},
		{"reap", lockitem.Reap(seen, touch), []string{"held"}},
		{"raise floor", lockitem.RaiseFloor(seen, 250, touch), []string{"released", "released, paused"}},
		{"tombstone", lockitem.Tombstone(layout, 250, touch), []string{"absent"}},
		{"delete", lockitem.Delete(seen, time.Unix(1001, 0)), []string{"released"}},
		{"delete before its time", lockitem.Delete(seen, time.Unix(1000, 0)), nil},
		{"mark", lockitem.Mark(seen, time.UnixMilli(3), "R9"), []string{"held", "held, paused"}},
		{"revoke", lockitem.Revoke(seen, touch), []string{"held", "held, paused"}},
		{"pause", lockitem.Pause(seen, "later", "R9"), []string{"held", "held, paused", "released", "released, paused"}},
		{"pause where nothing is", lockitem.PauseAbsent(layout, 250, "later", "R9"), []string{"absent"}},
		{"resume", lockitem.Resume(seen, touch), []string{"held, paused", "released, paused"}},
		{"raise floor of a held one", lockitem.RaiseFloorHeld(seen, 250, "R9", time.Unix(2000, 0)), []string{"held", "held, paused"}},
		{"held check", lockitem.HeldCheck("a#1", 100), []string{"held", "held, renewed", "held, paused"}},
	}
}

// TestEveryExpressionOnEveryState evaluates each operation's real condition on each state
// that it may find, on the fake and on the emulator.
func TestEveryExpressionOnEveryState(t *testing.T) {
	fake := fakedynamo.New()
	t.Cleanup(fake.Close)
	e := emulatortest.ForTest(t)
	db, err := e.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, db := range map[string]*dynamodb.Client{"fake": fake.Client(), "emulator": db} {
		t.Run(name, func(t *testing.T) {
			tab := "expressions-" + time.Now().Format("150405.000000000")
			_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
				TableName: &tab, BillingMode: types.BillingModePayPerRequest,
				AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: types.ScalarAttributeTypeS}},
				KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: types.KeyTypeHash}},
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range expressions() {
				for state, item := range states() {
					key := lockitem.Layout{Partition: "key"}.Key(x.name + " on " + state)
					if item != nil {
						item["key"] = key["key"]
						if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tab, Item: item}); err != nil {
							t.Fatal(err)
						}
					}
					err := apply(t, db, tab, key, x)
					want := slices.Contains(x.on, state)
					if want != (err == nil) {
						t.Errorf("%s on %q: %v, want success %v", x.name, state, err, want)
					}
					if err != nil && !refused(err) {
						t.Errorf("%s on %q: %v", x.name, state, err)
					}
				}
			}
		})
	}
}

// apply sends an expression as the kind of request that it is for.
func apply(t *testing.T, db *dynamodb.Client, table string, key map[string]types.AttributeValue, x expression) error {
	t.Helper()
	var err error
	switch {
	case x.expr.Update != "":
		_, err = db.UpdateItem(t.Context(), x.expr.UpdateInput(table, key))
	case x.name == "held check":
		_, err = db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{x.expr.CheckItem(table, key)},
		})
	default:
		_, err = db.DeleteItem(t.Context(), x.expr.DeleteInput(table, key))
	}
	return err
}

func refused(err error) bool {
	var update *types.ConditionalCheckFailedException
	var transaction *types.TransactionCanceledException
	return errors.As(err, &update) ||
		errors.As(err, &transaction) && len(transaction.CancellationReasons) == 1 && aws.ToString(transaction.CancellationReasons[0].Code) == "ConditionalCheckFailed"
}
