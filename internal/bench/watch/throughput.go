package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/lockstream/lockstream/streamwatcher"
)

// throughput is how fast full pages of renewals that nobody waits for are read on one
// core.
type throughput struct {
	Path      string  `json:"path"`
	PerSecond float64 `json:"records_per_second"`
	Micros    float64 `json:"us_per_record"`
}

const (
	pageRecords = 1000
	readFor     = 4 * time.Second

	firstSequence = 1_000_000_000_000_000
	pageNumber    = "PAGENUMBER" // stands in a page for its number
)

// measureThroughput reads pages without end, from memory: through the SDK's client, and
// with pages that are decoded already.
func measureThroughput(ctx context.Context, r *result) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	canned := newCanned()
	sdk := dynamodbstreams.New(dynamodbstreams.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://127.0.0.1"), HTTPClient: canned,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "bench", SecretAccessKey: "bench"}, nil
		}),
	})
	tables := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://127.0.0.1"), HTTPClient: canned, Credentials: sdk.Options().Credentials,
	})
	page, err := sdk.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: aws.String("i")})
	if err != nil {
		return err
	}
	for _, path := range []struct {
		name    string
		streams streamwatcher.StreamsAPI
		least   float64
	}{
		{"after the SDK's decoding", &decoded{Client: sdk, page: page}, 1e6},
		{"whole, with the SDK", sdk, 10_000},
	} {
		t, err := flow(ctx, tables, path.streams)
		if err != nil {
			return err
		}
		t.Path = path.name
		fmt.Printf("throughput %s: %.0f records/s on one core, %.2f µs each\n", t.Path, t.PerSecond, t.Micros)
		r.Throughput = append(r.Throughput, t)
		r.bar(t.PerSecond >= path.least, "%.0f records/s %s", t.PerSecond, t.Path)
	}
	return nil
}

// flow lets a watcher read for a while and counts.
func flow(ctx context.Context, tables streamwatcher.TableAPI, streams streamwatcher.StreamsAPI) (t throughput, err error) {
	w, err := streamwatcher.New(tables, streams, "locks")
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, w.Close(context.Background())) }()
	watch := w.Watch("nobody's")
	defer watch.Stop()
	if err := w.Ready(ctx, watch); err != nil {
		return t, err
	}
	before, began := w.Stats().Records, time.Now()
	time.Sleep(readFor)
	n, took := float64(w.Stats().Records-before), time.Since(began)
	t.PerSecond = n / took.Seconds()
	t.Micros = float64(took.Microseconds()) / n
	return t, nil
}

// decoded answers GetRecords with the same page every time, but for new sequence numbers,
// whose making counts as the watcher's time.
type decoded struct {
	*dynamodbstreams.Client
	page   *dynamodbstreams.GetRecordsOutput
	number int
}

func (d *decoded) GetRecords(ctx context.Context, _ *dynamodbstreams.GetRecordsInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	for i := range d.page.Records { // one shard: nobody else reads the page meanwhile
		d.number++
		d.page.Records[i].Dynamodb.SequenceNumber = aws.String(strconv.Itoa(firstSequence + d.number))
	}
	return d.page, ctx.Err()
}

// canned is an HTTP client that answers from memory: one table, one shard, and pages of
// renewals without end.
type canned struct {
	answers map[string][]byte
	pages   atomic.Int64
}

func newCanned() *canned {
	const arn = "arn:aws:dynamodb:us-east-1:000000000000:table/locks/stream/2026-01-01T00:00:00.000"
	var page strings.Builder
	for i := range pageRecords {
		image := func(version string) string {
			return fmt.Sprintf(`{"key":{"S":"lock-%03d"},"ownerName":{"S":"0123456789abcdef#%d"},"leaseDuration":{"S":"20000"},`+
				`"recordVersionNumber":{"S":"%s-%d"},"fencingToken":{"N":"1767225600000"},"lockOp":{"S":"renew"},"leaseUntil":{"N":"1767225620000"}}`,
				i%100, i%100, version, i)
		}
		if i > 0 {
			page.WriteByte(',')
		}
		fmt.Fprintf(&page, `{"eventID":"%d","eventName":"MODIFY","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"us-east-1",`+
			`"dynamodb":{"ApproximateCreationDateTime":1767225600,"Keys":{"key":{"S":"lock-%03d"}},"OldImage":%s,"NewImage":%s,`+
			`"SequenceNumber":"9%s%03d","SizeBytes":700,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`,
			i, i%100, image("before"), image("after"), pageNumber, i)
	}
	return &canned{answers: map[string][]byte{
		"DescribeTable":    []byte(`{"Table":{"TableName":"locks","LatestStreamArn":"` + arn + `","StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}}`),
		"DescribeStream":   []byte(`{"StreamDescription":{"StreamArn":"` + arn + `","StreamStatus":"ENABLED","Shards":[{"ShardId":"shard","SequenceNumberRange":{"StartingSequenceNumber":"1"}}]}}`),
		"GetShardIterator": []byte(`{"ShardIterator":"i"}`),
		"GetRecords":       []byte(`{"Records":[` + page.String() + `],"NextShardIterator":"i"}`),
	}}
}

// Do implements the SDK's HTTPClient.
func (c *canned) Do(req *http.Request) (*http.Response, error) {
	_, op, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	body := c.answers[op]
	if op == "GetRecords" {
		body = bytes.ReplaceAll(body, []byte(pageNumber), fmt.Appendf(nil, "%0*d", len(pageNumber), c.pages.Add(1)))
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:   io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}
