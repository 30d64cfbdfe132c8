package lockclient

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// twin switches one safety rule off from outside, to show that the random schedules
// notice. Each hook may be nil.
type twin struct {
	plan    func(*plan)
	edit    func(p *proc, in *dynamodb.UpdateItemInput) // changes a write on its way
	granted func(p *proc, l *Lease)                     // changes a lease that was just got
	renewed func(p *proc, l *Lease)                     // … or renewed
}

// edited passes writes through a twin's edit, and remembers when each name's last one was
// composed and whether its outcome had to be settled.
type edited struct {
	DynamoDBAPI
	p    *proc
	edit func(p *proc, in *dynamodb.UpdateItemInput)

	mu      sync.Mutex
	sent    map[string]reading
	settled map[string]bool
}

func (e *edited) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, fns ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	e.mu.Lock()
	e.sent[in.Key["key"].(*types.AttributeValueMemberS).Value] = e.p.clock.read()
	e.mu.Unlock()
	if e.edit != nil {
		copied := *in
		copied.ExpressionAttributeNames = maps.Clone(in.ExpressionAttributeNames)
		copied.ExpressionAttributeValues = maps.Clone(in.ExpressionAttributeValues)
		e.edit(e.p, &copied)
		in = &copied
	}
	return e.DynamoDBAPI.UpdateItem(ctx, in, fns...)
}

// recovered notes that name's last write found an older one applied.
func (e *edited) recovered(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.settled[name] = true
}

// fromRetry returns when the write was sent that settled an older one of name.
func (e *edited) fromRetry(name string) (reading, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.settled[name]
	e.settled[name] = false
	return e.sent[name], was
}

// trusting makes l trust its lease for d from r.
func (l *Lease) trusting(r reading, d time.Duration) {
	w := window{from: r, trust: d}
	l.window.Store(&w)
	l.rearm(w, l.c.opt.clock.read(), false)
}

// The four rules that keep a lock safe, each with its twin.
func TestTwinsOfTheSafetyRulesAreFound(t *testing.T) {
	t.Parallel()
	// Runs in which holders lose the table in the worst moment show the most.
	harsh := func(p *plan) {
		p.names, p.unrest, p.cuts, p.cutAfter, p.faults, p.lost, p.late = 1, 90*time.Second, true, 0.5, 0, 0.5, p.lease
		p.notifier = "honest"
	}
	for name, tc := range map[string]struct {
		twin twin
		want string // a pattern
	}{
		"the whole lease is trusted, from the answer on": {twin{
			plan:    harsh,
			granted: func(p *proc, l *Lease) { l.trusting(p.clock.read(), l.lease) },
			renewed: func(p *proc, l *Lease) { l.trusting(p.clock.read(), l.lease) },
		}, "are valid"},
		"a takeover that does not name the version": {twin{
			plan: harsh,
			edit: func(_ *proc, in *dynamodb.UpdateItemInput) {
				if !strings.Contains(aws.ToString(in.ConditionExpression), "attribute_not_exists(#isReleased)") || in.ExpressionAttributeValues[":seenRVN"] == nil {
					return
				}
				in.ConditionExpression = aws.String("attribute_not_exists(#isReleased)")
				delete(in.ExpressionAttributeNames, "#paused")
				delete(in.ExpressionAttributeValues, ":seenRVN")
				delete(in.ExpressionAttributeValues, ":seenToken")
			},
		}, "are valid|^token"},
		"a settled acquire that counts from its retry": {twin{
			plan: harsh,
			granted: func(p *proc, l *Lease) {
				if sent, ok := p.writes.fromRetry(l.name); ok {
					l.trusting(sent, trustOf(l.lease))
				}
			},
		}, "are valid"},
		"a token that is the time only": {twin{
			plan: func(p *plan) { p.names, p.unrest = 1, 60*time.Second },
			edit: func(p *proc, in *dynamodb.UpdateItemInput) {
				if in.ExpressionAttributeValues[":seenToken"] != nil {
					now, _, _ := p.c.server.now(time.Now())
					now = now.Add(time.Duration(p.id) * -time.Second) // clocks differ
					in.ExpressionAttributeValues[":fencingToken"] = &types.AttributeValueMemberN{Value: strconv.FormatInt(now.UnixMicro(), 10)}
				}
			},
		}, "token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(200) {
				broken, timeline, _ := play(t, 1000+seed, tc.twin)
				if broken != "" && regexp.MustCompile(tc.want).MatchString(broken) {
					t.Logf("found by seed %d: %s", 1000+seed, broken)
					return
				}
				if broken != "" {
					t.Fatalf("seed %d broke something else: %s\n%s", 1000+seed, broken, timeline)
				}
			}
			t.Error("the twin was not found: the schedules show nothing")
		})
	}
}

// leaseOf is the live lease of a process for a name, nil where there is none.
func (s *schedule) leaseOf(p *proc, name string) *Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.live[name], func(l *Lease) bool { return l.c == p.c && l.ended.Load() == nil })
	if i < 0 {
		return nil
	}
	return s.live[name][i]
}
