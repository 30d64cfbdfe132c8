package lockitem_test

import (
	"strings"
	"testing"

	"github.com/lockstream/lockstream/internal/lockattr"
	"github.com/lockstream/lockstream/internal/lockitem"
)

// A pause would end with the item if the service deleted it; and a mark changes nothing that
// the holder proves its hold with but the version.
func TestOperatorWritesKeepWhatTheyMust(t *testing.T) {
	exprs := allExprs()
	for _, name := range []string{"pause", "pause absent"} {
		_, remove, _ := strings.Cut(exprs[name].Update, "REMOVE")
		if !strings.Contains(remove, "#"+lockattr.TTL) {
			t.Errorf("%s keeps the TTL: %s", name, exprs[name].Update)
		}
	}
	for _, name := range []string{"mark", "pause", "resume"} {
		for _, attr := range []string{lockattr.OwnerName, lockattr.FencingToken, lockattr.IsReleased, lockattr.LeaseDuration} {
			if strings.Contains(exprs[name].Update, "#"+attr) {
				t.Errorf("%s writes %s: %s", name, attr, exprs[name].Update)
			}
		}
	}
}

func TestListInput(t *testing.T) {
	for _, tc := range []struct {
		layout lockitem.Layout
		prefix string
		want   string
		values int
	}{
		{lockitem.Layout{Partition: "key"}, "", "attribute_exists(#recordVersionNumber)", 0},
		{lockitem.Layout{Partition: "key", Prefix: "p/"}, "", "attribute_exists(#recordVersionNumber) AND begins_with(#partition, :prefix)", 1},
		{
			lockitem.Layout{Partition: "pk", Sort: "sk", SortValue: "lock"},
			"or",
			"attribute_exists(#recordVersionNumber) AND begins_with(#partition, :prefix) AND #sort = :sort", 2,
		},
	} {
		in := lockitem.ListInput(tc.layout, "locks", tc.prefix)
		if *in.FilterExpression != tc.want || len(in.ExpressionAttributeValues) != tc.values || (in.ExpressionAttributeValues == nil) != (tc.values == 0) {
			t.Errorf("%q, %v", *in.FilterExpression, in.ExpressionAttributeValues)
		}
		if !*in.ConsistentRead || *in.TableName != "locks" {
			t.Errorf("%+v", in)
		}
	}
}
