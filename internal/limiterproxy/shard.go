package limiterproxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// mostBody bounds what is read of a message; a page of records has about 1 MB.
const mostBody = 16 << 20

// mostIterators is how many iterators are remembered; then all are forgotten, and reads
// pass unlimited until their next iterator.
const mostIterators = 10_000

// shard is what the proxy knows of a shard. The proxy's mutex guards it.
type shard struct {
	stream, id string
	reads      bucket
	seen       map[string]time.Time // when the tail saw a record, by sequence number
}

// call is a request to a stream.
type call struct {
	in struct {
		StreamARN     string `json:"StreamArn"`
		ShardID       string `json:"ShardId"`
		ShardIterator string
	}
	shard *shard // of GetRecords; nil: not known
}

type callKey struct{}

// read decodes a request's body and puts it back.
func (p *Proxy) read(r *http.Request) (*call, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, mostBody))
	if err != nil {
		return nil, fmt.Errorf("limiterproxy: read the request: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var c call
	if err := json.Unmarshal(body, &c.in); err != nil {
		return nil, fmt.Errorf("limiterproxy: the request is no JSON: %w", err)
	}
	return &c, nil
}

// answered takes in the answers to calls to a stream, and cuts pages.
func (p *Proxy) answered(resp *http.Response) error {
	c, ok := resp.Request.Context().Value(callKey{}).(*call)
	if !ok || resp.StatusCode != http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostBody))
	if err != nil {
		return fmt.Errorf("limiterproxy: read the answer: %w", err)
	}
	if err := resp.Body.Close(); err != nil {
		return fmt.Errorf("limiterproxy: read the answer: %w", err)
	}
	if c.in.ShardIterator == "" {
		err = p.learn(c, body)
	} else {
		body, err = p.page(c, body)
	}
	if err != nil {
		return err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	resp.Header.Del("X-Amz-Crc32")
	return nil
}

// learn notes whose iterator was given out.
func (p *Proxy) learn(c *call, body []byte) error {
	var out struct{ ShardIterator string }
	if err := json.Unmarshal(body, &out); err != nil {
		return fmt.Errorf("limiterproxy: the answer is no JSON: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := c.in.StreamARN + "/" + c.in.ShardID
	sh := p.shards[key]
	if sh == nil {
		sh = &shard{stream: c.in.StreamARN, id: c.in.ShardID, seen: make(map[string]time.Time)}
		p.shards[key] = sh
		if p.opt.Visibility > 0 {
			p.served.Go(func() { p.tail(sh) })
		}
	}
	p.remember(out.ShardIterator, sh)
	return nil
}

// remember is called with the mutex held.
func (p *Proxy) remember(iterator string, sh *shard) {
	if len(p.iterators) >= mostIterators {
		clear(p.iterators)
	}
	if iterator != "" && sh != nil {
		p.iterators[iterator] = sh
	}
}

// page notes the next iterator of a page and leaves out what is not to be seen yet.
func (p *Proxy) page(c *call, body []byte) ([]byte, error) {
	var out struct {
		Records           []json.RawMessage
		NextShardIterator string `json:",omitempty"`
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return nil, fmt.Errorf("limiterproxy: the answer is no JSON: %w", err)
	}
	shown, last, err := p.visible(c.shard, out.Records)
	if err != nil {
		return nil, err
	}
	if shown < len(out.Records) {
		out.Records = out.Records[:shown]
		if out.NextShardIterator = c.in.ShardIterator; shown > 0 {
			if out.NextShardIterator, err = p.after(c.shard, last); err != nil {
				return nil, err
			}
		}
		if body, err = json.Marshal(out); err != nil {
			return nil, fmt.Errorf("limiterproxy: %w", err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remember(out.NextShardIterator, c.shard)
	return body, nil
}

// visible returns how many records of a page may be seen and the sequence number of the
// last of these.
func (p *Proxy) visible(sh *shard, records []json.RawMessage) (n int, last string, err error) {
	if sh == nil || p.opt.Visibility == 0 {
		return len(records), "", nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, raw := range records {
		var rec struct {
			Dynamodb struct{ SequenceNumber string } `json:"dynamodb"`
		}
		if err := json.Unmarshal(raw, &rec); err != nil {
			return 0, "", fmt.Errorf("limiterproxy: a record is no JSON: %w", err)
		}
		at, ok := sh.seen[rec.Dynamodb.SequenceNumber]
		if !ok { // seen here before the tail saw it
			at = time.Now()
			sh.seen[rec.Dynamodb.SequenceNumber] = at
		}
		if time.Since(at) < p.opt.Visibility {
			p.counts.HeldBack++
			return i, last, nil
		}
		last = rec.Dynamodb.SequenceNumber
	}
	return len(records), last, nil
}

// after gets an iterator behind a record.
func (p *Proxy) after(sh *shard, sequence string) (string, error) {
	out, err := p.streams.GetShardIterator(p.ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &sh.stream, ShardId: &sh.id,
		ShardIteratorType: types.ShardIteratorTypeAfterSequenceNumber, SequenceNumber: &sequence,
	})
	if err != nil {
		return "", fmt.Errorf("limiterproxy: %w", err)
	}
	return aws.ToString(out.ShardIterator), nil
}

// tailEvery is how often the proxy itself looks for records: the error of Visibility.
const tailEvery = 10 * time.Millisecond

// tail notes when records appear, which the endpoint shows at once.
func (p *Proxy) tail(sh *shard) {
	tick := time.NewTicker(tailEvery)
	defer tick.Stop()
	iterator := ""
	for {
		select {
		case <-tick.C:
		case <-p.ctx.Done():
			return
		}
		if iterator == "" {
			out, err := p.streams.GetShardIterator(p.ctx, &dynamodbstreams.GetShardIteratorInput{
				StreamArn: &sh.stream, ShardId: &sh.id, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
			})
			if err != nil {
				continue
			}
			iterator = aws.ToString(out.ShardIterator)
		}
		out, err := p.streams.GetRecords(p.ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: &iterator})
		if err != nil {
			iterator = ""
			continue
		}
		iterator = aws.ToString(out.NextShardIterator)
		p.saw(sh, out.Records)
		if iterator == "" {
			return // the shard has ended
		}
	}
}

// saw takes a record for as old as it has been here, or as its time in whole seconds says
// if that is longer.
func (p *Proxy) saw(sh *shard, records []types.Record) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range records {
		if r.Dynamodb == nil {
			continue
		}
		at := now
		if c := r.Dynamodb.ApproximateCreationDateTime; c != nil && c.Add(time.Second).Before(now) {
			at = c.Add(time.Second)
		}
		seq := aws.ToString(r.Dynamodb.SequenceNumber)
		if known, ok := sh.seen[seq]; !ok || at.Before(known) {
			sh.seen[seq] = at
		}
	}
}
