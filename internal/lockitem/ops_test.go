package lockitem_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/lockattr"
	"github.com/lockstream/lockstream/internal/lockitem"
)

var (
	layout = lockitem.Layout{Partition: "key"}
	seen   = lockitem.Version{RVN: "R1", Token: 10, HasToken: true}
	mine   = lockitem.Hold{Owner: "c#1", RVN: "R1", Token: 10}
	grant  = lockitem.Grant{
		Owner: "c#1", RVN: "R2", Token: 11, Label: "host/1", Lease: 20 * time.Second,
		AcquiredAt: time.UnixMilli(1790000000000), LeaseUntil: time.UnixMilli(1790000020000), TTL: time.Unix(1790003620, 0),
	}
	touch = lockitem.Touch{RVN: "R2", Lease: 20 * time.Second, LeaseUntil: time.UnixMilli(1790000020000), TTL: time.Unix(1790003620, 0)}
)

func withOthers(t lockitem.Touch) lockitem.Touch {
	t.Attributes = map[string]types.AttributeValue{"last-run.at": n("1"), "status": s("done")}
	return t
}

func allExprs() map[string]lockitem.Expr {
	return map[string]lockitem.Expr{
		"acquire unknown":   lockitem.AcquireUnknown(layout, grant),
		"acquire released":  lockitem.AcquireReleased(seen, grant),
		"takeover":          lockitem.Takeover(seen, grant),
		"hand over":         lockitem.HandOver(mine, grant),
		"renew":             lockitem.Renew(mine, touch),
		"release":           lockitem.Release(mine, touch),
		"release with more": lockitem.Release(mine, withOthers(touch)),
		"reap":              lockitem.Reap(seen, touch),
		"raise floor":       lockitem.RaiseFloor(seen, 20, touch),
		"tombstone":         lockitem.Tombstone(layout, 20, touch),
		"delete":            lockitem.Delete(seen, time.Unix(1790003620, 0)),
		"mark":              lockitem.Mark(seen, time.UnixMilli(1790000020000), "R2"),
		"revoke":            lockitem.Revoke(seen, touch),
		"pause":             lockitem.Pause(seen, "maintenance", "R2"),
		"pause absent":      lockitem.PauseAbsent(layout, 20, "maintenance", "R2"),
		"resume":            lockitem.Resume(seen, touch),
		"raise floor, held": lockitem.RaiseFloorHeld(seen, 20, "R2", time.Unix(1790003620, 0)),
		"held check":        lockitem.HeldCheck("c#1", 10),
	}
}

// TestExpressionsUsePlaceholdersOnly shows that no attribute name or value is spelled in
// an expression, that each placeholder is defined, and that none is defined in vain: the
// service refuses both.
func TestExpressionsUsePlaceholdersOnly(t *testing.T) {
	token := regexp.MustCompile(`[#:]?[A-Za-z_][A-Za-z0-9_]*`)
	words := map[string]bool{"SET": true, "REMOVE": true, "AND": true, "OR": true, "attribute_exists": true, "attribute_not_exists": true}
	for name, e := range allExprs() {
		used := map[string]bool{}
		for _, w := range token.FindAllString(e.Condition+" "+e.Update, -1) {
			switch w[0] {
			case '#':
				if e.Names[w] == "" {
					t.Errorf("%s: %s is not defined", name, w)
				}
			case ':':
				if e.Values[w] == nil {
					t.Errorf("%s: %s is not defined", name, w)
				}
			default:
				if !words[w] {
					t.Errorf("%s: bare word %q", name, w)
				}
			}
			used[w] = true
		}
		for p := range e.Names {
			if !used[p] {
				t.Errorf("%s: %s is not used", name, p)
			}
		}
		for p := range e.Values {
			if !used[p] {
				t.Errorf("%s: %s is not used", name, p)
			}
		}
	}
}

// TestEveryWriteHasAFreshVersion guards the rule that all others rest on.
func TestEveryWriteHasAFreshVersion(t *testing.T) {
	for name, e := range allExprs() {
		if name == "delete" || name == "held check" {
			continue
		}
		if !strings.Contains(e.Update, "#recordVersionNumber = :recordVersionNumber") {
			t.Errorf("%s does not set the version: %s", name, e.Update)
		}
		if name == "acquire unknown" || name == "tombstone" || name == "pause absent" {
			continue
		}
		if !strings.Contains(e.Condition, "#recordVersionNumber = :") {
			t.Errorf("%s does not name the version that it replaces: %s", name, e.Condition)
		}
	}
}

// Cases: E3
//
// No condition compares a stored time; the delete of a free lock, which
// decides nothing about a holder, is the exception.
func TestNoConditionComparesATime(t *testing.T) {
	for name, e := range allExprs() {
		for _, attr := range []string{lockattr.AcquiredAt, lockattr.LeaseUntil, lockattr.TTL, lockattr.LeaseDuration, lockattr.StopBy} {
			if name != "delete" && strings.Contains(e.Condition, "#"+attr) {
				t.Errorf("%s compares %s: %s", name, attr, e.Condition)
			}
		}
	}
}

func TestZeroTimesAreRemovedNotWritten(t *testing.T) {
	g := grant
	g.LeaseUntil, g.TTL = time.Time{}, time.Time{}
	e := lockitem.AcquireReleased(seen, g)
	for _, attr := range []string{lockattr.LeaseUntil, lockattr.TTL} {
		_, remove, _ := strings.Cut(e.Update, "REMOVE")
		if e.Values[":"+attr] != nil || !strings.Contains(remove, "#"+attr) {
			t.Errorf("%s is not removed: %s", attr, e.Update)
		}
	}
}

func TestDataIsKeptWrittenOrRemoved(t *testing.T) {
	for _, tc := range []struct {
		data []byte
		set  bool
		want string
	}{{nil, false, ""}, {[]byte("x"), true, "#data = :data"}, {nil, true, "REMOVE"}} {
		g := grant
		g.Data, g.SetData = tc.data, tc.set
		e := lockitem.AcquireReleased(seen, g)
		_, named := e.Names["#data"]
		if named != tc.set || !strings.Contains(e.Update, tc.want) {
			t.Errorf("data %q set %v: %s", tc.data, tc.set, e.Update)
		}
	}
}

func TestRequestsAskForWhatALoserLearns(t *testing.T) {
	in := lockitem.AcquireUnknown(layout, grant).UpdateInput("locks", layout.Key("orders"))
	if in.ReturnValues != "ALL_NEW" || in.ReturnValuesOnConditionCheckFailure != "ALL_OLD" || aws.ToString(in.TableName) != "locks" {
		t.Errorf("%+v", in)
	}
	if c := lockitem.HeldCheck("c#1", 10).CheckItem("locks", layout.Key("orders")).ConditionCheck; c == nil ||
		strings.Contains(aws.ToString(c.ConditionExpression), lockattr.RecordVersionNumber) {
		t.Error("the held check names the version, which changes with every renewal")
	}
	if d := lockitem.Delete(seen, time.Unix(1, 0)).DeleteInput("locks", layout.Key("orders")); d.ConditionExpression == nil {
		t.Error("unconditional delete")
	}
}
