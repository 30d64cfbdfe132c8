package fakedynamo_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/lockstream/lockstream/internal/fakedynamo"
)

// shore is the stream of the table "locks", read through one front.
type shore struct {
	t *testing.T
	*fakedynamo.Server
	fakedynamo.Shards
	api streams
	arn *string
}

// overShards runs a test in virtual time through both fronts.
func overShards(t *testing.T, test func(t *testing.T, s *shore)) {
	for name, choose := range map[string]func(*fakedynamo.Server) streams{
		"http": func(s *fakedynamo.Server) streams {
			return s.StreamsClient(func(o *dynamodbstreams.Options) { o.Retryer = aws.NopRetryer{} })
		},
		"go": func(s *fakedynamo.Server) streams { return s.API() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shore{t: t, Server: newServer(t)}
				s.Shards, s.api = s.Server.Shards(table), choose(s.Server)
				out, err := s.API().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(table)})
				if err != nil {
					t.Fatal(err)
				}
				s.arn = out.Table.LatestStreamArn
				time.Sleep(time.Second) // nothing happens in the instant that iterators expire at
				test(t, s)
			})
		})
	}
}

func (s *shore) put(id string) {
	s.t.Helper()
	if err := s.PutRaw(table, item{"id": str(id), "at": num(strconv.FormatInt(time.Now().UnixNano(), 10))}); err != nil {
		s.t.Fatal(err)
	}
}

// all lists the ids of all shards, page by page, with their number of pages.
func (s *shore) all(filter *streamtypes.ShardFilter) (ids []string, pages int) {
	s.t.Helper()
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: s.arn, ShardFilter: filter}
	for {
		out, err := s.api.DescribeStream(s.t.Context(), in)
		if err != nil {
			s.t.Fatal(err)
		}
		pages++
		for _, sh := range out.StreamDescription.Shards {
			ids = append(ids, *sh.ShardId)
		}
		if in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			return ids, pages
		}
	}
}

func (s *shore) at(id string, kind streamtypes.ShardIteratorType, change ...func(*dynamodbstreams.GetShardIteratorInput)) (*string, error) {
	in := &dynamodbstreams.GetShardIteratorInput{StreamArn: s.arn, ShardId: &id, ShardIteratorType: kind}
	for _, f := range change {
		f(in)
	}
	out, err := s.api.GetShardIterator(s.t.Context(), in)
	if err != nil {
		return nil, err
	}
	return out.ShardIterator, nil
}

// page reads one page and gives the ids of its items.
func (s *shore) page(it *string) (ids []string, next *string, err error) {
	out, err := s.api.GetRecords(s.t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it})
	if err != nil {
		return nil, nil, err
	}
	for _, r := range out.Records {
		ids = append(ids, r.Dynamodb.Keys["id"].(*streamtypes.AttributeValueMemberS).Value)
	}
	return ids, out.NextShardIterator, nil
}

// must is page at a new iterator.
func (s *shore) must(id string, kind streamtypes.ShardIteratorType) ([]string, *string) {
	s.t.Helper()
	it, err := s.at(id, kind)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.on(it)
}

func (s *shore) on(it *string) ([]string, *string) {
	s.t.Helper()
	ids, next, err := s.page(it)
	if err != nil {
		s.t.Fatal(err)
	}
	return ids, next
}

func (s *shore) want(got []string, want ...string) {
	s.t.Helper()
	if !slices.Equal(got, want) {
		s.t.Errorf("got %v, want %v", got, want)
	}
}

const horizon = streamtypes.ShardIteratorTypeTrimHorizon

func TestSplitSpreadsKeys(t *testing.T) {
	overShards(t, func(t *testing.T, s *shore) {
		first := s.Open()[0]
		s.put("before")
		children := s.Rotate(first, 0, time.Minute)
		for i := range 40 {
			s.put(fmt.Sprint(i))
		}
		last, next := s.must(first, horizon)
		s.want(last, "before")
		if next != nil || s.Rotate(first) != nil {
			t.Error("a closed shard goes on")
		}
		a, more := s.must(children[0], horizon)
		b, _ := s.must(children[1], horizon)
		if len(a) == 0 || len(b) == 0 || len(a)+len(b) != 40 || more == nil {
			t.Errorf("%d and %d records", len(a), len(b))
		}
		if got := s.Of(map[string]streamtypes.AttributeValue{"id": &streamtypes.AttributeValueMemberS{Value: a[0]}}); got != children[0] {
			t.Errorf("%s is in %s", a[0], got)
		}
		ids, _ := s.all(nil)
		s.want(ids, first, children[0])
		time.Sleep(time.Minute)
		ids, _ = s.all(&streamtypes.ShardFilter{Type: streamtypes.ShardFilterTypeChildShards, ShardId: &first})
		s.want(ids, children...)
	})
}

func TestListsOfShards(t *testing.T) {
	overShards(t, func(t *testing.T, s *shore) {
		first := s.Open()[0]
		filter := &streamtypes.ShardFilter{Type: streamtypes.ShardFilterTypeChildShards, ShardId: &first}
		child := s.Rotate(first)[0]
		for kind, want := range map[fakedynamo.ChildFilter][]string{
			fakedynamo.ChildrenListed: {child}, fakedynamo.ChildrenAndSelf: {first, child}, fakedynamo.ChildrenIgnored: {first, child},
		} {
			s.SetStreamRules(func(r *fakedynamo.StreamRules) { r.Children = kind })
			ids, _ := s.all(filter)
			s.want(ids, want...)
		}
		s.SetStreamRules(func(r *fakedynamo.StreamRules) { r.Children = fakedynamo.ChildrenRefused })
		_, err := s.api.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: s.arn, ShardFilter: filter})
		if code(err) != "ValidationException" {
			t.Errorf("a refused filter gives %v", err)
		}
		for i := range 248 {
			s.Add(fmt.Sprintf("shard-%03d", i), "", 0)
		}
		s.SetStreamRules(func(r *fakedynamo.StreamRules) { r.Shuffled, r.Twice = true, true })
		ids, pages := s.all(nil)
		if len(ids) != 252 || slices.IsSorted(ids) || pages != 3 {
			t.Errorf("%d shards on %d pages", len(ids), pages)
		}
		if slices.Sort(ids); len(slices.Compact(ids)) != 250 {
			t.Errorf("%d different shards", len(slices.Compact(ids)))
		}
		s.Remove(first)
		if _, err := s.at(first, horizon); code(err) != "ResourceNotFoundException" {
			t.Errorf("a removed shard gives %v", err)
		}
		s.List(child, false)
		if ids, _ := s.all(nil); slices.Contains(ids, first) || slices.Contains(ids, child) {
			t.Error("a hidden shard is listed")
		}
		if _, err := s.at(child, horizon); err != nil {
			t.Error(err)
		}
	})
}

func TestTrimmedRecords(t *testing.T) {
	overShards(t, func(t *testing.T, s *shore) {
		id := s.Open()[0]
		s.put("a")
		old, err := s.at(id, horizon)
		if err != nil {
			t.Fatal(err)
		}
		seq := s.Records(table)[0].Dynamodb.SequenceNumber
		time.Sleep(time.Minute)
		s.put("b")
		s.Trim(30 * time.Second)
		if _, _, err := s.page(old); code(err) != "TrimmedDataAccessException" {
			t.Errorf("a trimmed position gives %v", err)
		}
		if _, err := s.at(id, streamtypes.ShardIteratorTypeAfterSequenceNumber, func(in *dynamodbstreams.GetShardIteratorInput) { in.SequenceNumber = seq }); code(err) != "TrimmedDataAccessException" {
			t.Errorf("a trimmed sequence number gives %v", err)
		}
		ids, next := s.must(id, horizon)
		s.want(ids, "b")
		s.put("c")
		ids, _ = s.on(next)
		s.want(ids, "c")
	})
}

func TestIteratorsByTimeAndAge(t *testing.T) {
	overShards(t, func(t *testing.T, s *shore) {
		id := s.Open()[0]
		s.put("a")
		time.Sleep(1500 * time.Millisecond)
		middle := time.Now()
		time.Sleep(1500 * time.Millisecond)
		s.put("b")
		by := func(at time.Time) (*string, error) {
			return s.at(id, streamtypes.ShardIteratorTypeAtTimestamp, func(in *dynamodbstreams.GetShardIteratorInput) { in.Timestamp = &at })
		}
		it, err := by(middle)
		if err != nil {
			t.Fatal(err)
		}
		ids, next := s.on(it)
		s.want(ids, "b")
		if _, err := by(time.Now().Add(time.Minute)); code(err) != "ValidationException" {
			t.Errorf("a future time gives %v", err)
		}
		s.SetStreamRules(func(r *fakedynamo.StreamRules) { r.NoTimestamps = true })
		if _, err := by(middle); code(err) != "ValidationException" {
			t.Errorf("an old server gives %v", err)
		}
		s.ExpireIterators()
		if _, _, err := s.page(next); code(err) != "ExpiredIteratorException" {
			t.Errorf("an expired iterator gives %v", err)
		}
	})
}

func TestLatePages(t *testing.T) {
	overShards(t, func(t *testing.T, s *shore) {
		s.SetStreamRules(func(r *fakedynamo.StreamRules) {
			r.LazyLatest, r.EmptyPages, r.PageRecords, r.Repeat = true, 2, 2, 1
			r.Delay = func() time.Duration { return time.Second }
		})
		id := s.Open()[0]
		latest, err := s.at(id, streamtypes.ShardIteratorTypeLatest)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b", "c"} {
			s.put(name)
		}
		s.Rotate(id)
		ids, next := s.on(latest) // takes effect now
		s.want(ids)
		var pages [][]string
		it, err := s.at(id, horizon)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // two because of the rule, one because nothing is visible
			ids, it = s.on(it)
			pages = append(pages, ids)
		}
		time.Sleep(time.Second)
		for it != nil {
			ids, it = s.on(it)
			pages = append(pages, ids)
		}
		if fmt.Sprint(pages) != "[[] [] [] [a b] [b c]]" {
			t.Errorf("pages %v", pages)
		}
		ids, next = s.on(next)
		s.want(ids)
		ids, next = s.on(next)
		if s.want(ids); next != nil {
			t.Error("the shard goes on")
		}
	})
}

func TestSharedLimits(t *testing.T) {
	overShards(t, func(t *testing.T, s *shore) {
		s.SetStreamRules(func(r *fakedynamo.StreamRules) { r.ReadsPerSecond, r.ListsPerSecond = 5, 10 })
		id := s.Open()[0]
		readers := make([]*string, 3)
		for i := range readers {
			_, readers[i] = s.must(id, horizon)
		}
		good, refused := len(readers), 0
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			for _, it := range readers {
				switch _, _, err := s.page(it); code(err) {
				case "":
					good++
				case "ThrottlingException":
					refused++
				default:
					t.Fatal(err)
				}
			}
		}
		if good != 55 || refused != 248 {
			t.Errorf("%d reads, %d refused", good, refused)
		}
		lists := 0
		for range 30 {
			if _, err := s.api.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: s.arn}); err == nil {
				lists++
			}
		}
		if lists != 10 {
			t.Errorf("%d lists in an instant", lists)
		}
	})
}

func TestRawRecords(t *testing.T) {
	overShards(t, func(t *testing.T, s *shore) {
		s.Add("odd", "parent", time.Minute)
		keys := map[string]streamtypes.AttributeValue{"id": &streamtypes.AttributeValueMemberS{Value: "k"}}
		rec := streamtypes.Record{EventName: streamtypes.OperationTypeModify, Dynamodb: &streamtypes.StreamRecord{Keys: keys}}
		if !s.Append("odd", rec) || !s.Append("", rec) || s.Append("nowhere", rec) {
			t.Error("appended wrongly")
		}
		s.Shards.Close("odd")
		if s.Append("odd", rec) {
			t.Error("a closed shard takes records")
		}
		ids, next := s.must("odd", horizon)
		if s.want(ids, "k"); next != nil {
			t.Error("the shard goes on")
		}
		if rec.Dynamodb.SequenceNumber != nil {
			t.Error("the caller's record was changed")
		}
		if at, ever := s.ListedAt("odd"); !ever || time.Until(at) != time.Minute {
			t.Errorf("listed at %v, %v", at, ever)
		}
		gone := s.Server.Shards("no table")
		if gone.Append("x", rec) || gone.Add("x", "", 0) || gone.Rotate("x") != nil || gone.Open() != nil || gone.Remove("x") {
			t.Error("a table that is not there has shards")
		}
	})
}
