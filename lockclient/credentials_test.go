package lockclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lockstream/lockstream/internal/fakedynamo"
)

// rotation is a source of credentials that are good for five seconds, and the service's
// side that refuses older ones.
type rotation struct {
	server *fakedynamo.Server
	dead   atomic.Bool // the source fails
	used   atomic.Int64
	turned atomic.Int64
}

func (r *rotation) key() string {
	return fmt.Sprint("KEY", time.Since(bubbleStart)/(5*time.Second))
}

// Retrieve is the SDK's way to ask for credentials.
func (r *rotation) Retrieve(context.Context) (aws.Credentials, error) {
	if r.dead.Load() {
		return aws.Credentials{}, errors.New("no credentials today")
	}
	r.turned.Add(1)
	end := bubbleStart.Add((time.Since(bubbleStart)/(5*time.Second) + 1) * 5 * time.Second)
	return aws.Credentials{AccessKeyID: r.key(), SecretAccessKey: "secret", CanExpire: true, Expires: end}, nil
}

// Do refuses what is signed with another key than the present one.
func (r *rotation) Do(req *http.Request) (*http.Response, error) {
	if !strings.Contains(req.Header.Get("Authorization"), r.key()+"/") {
		body := `{"__type":"com.amazon.coral.service#ExpiredTokenException","message":"The security token included in the request is expired"}`
		return &http.Response{
			StatusCode: 400, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
			Body: io.NopCloser(bytes.NewBufferString(body)), Request: req,
		}, nil
	}
	r.used.Add(1)
	return r.server.Do(req)
}

func (w *world) rotatingClient(optFns ...func(*Options)) (*Client, *rotation) {
	w.t.Helper()
	r := &rotation{server: w.server}
	db := w.server.Client(func(o *dynamodb.Options) { o.Credentials, o.HTTPClient = aws.NewCredentialsCache(r), r })
	c, err := New(db, testTable, append([]func(*Options){func(o *Options) { o.LeaseDuration = 10 * time.Second }}, optFns...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = append(w.open, c)
	return c, r
}

// Cases: N7
func TestCredentialsThatRotateKeepTheLease(t *testing.T) {
	bubble(t, func(w *world) {
		c, r := w.rotatingClient(func(o *Options) { o.RenewInterval = 700 * time.Millisecond })
		l := w.acquire(c, "orders")
		time.Sleep(time.Minute)
		if l.Err() != nil {
			t.Errorf("%v", l.Err())
		}
		if r.turned.Load() < 12 || r.used.Load() < 60 {
			t.Errorf("%d credentials, %d requests: the test shows nothing", r.turned.Load(), r.used.Load())
		}
		w.release(l)
	})
}

// Cases: C5, N8
func TestCredentialsThatEndEndTheLeaseInTimeAndFreeTheLock(t *testing.T) {
	bubble(t, func(w *world) {
		a, r := w.rotatingClient()
		b := w.client()
		l := w.acquire(a, "orders")
		p := w.goAcquire(w.ctx, b, "orders")
		time.Sleep(19900 * time.Millisecond) // those in use end in a moment
		r.dead.Store(true)
		failing := time.Now()
		<-l.Done()
		ended := time.Now()
		if took := ended.Sub(failing); took > 9600*time.Millisecond {
			t.Errorf("the holder learned of it after %v", took)
		}
		var lost *LostError
		if !errors.As(l.Err(), &lost) || lost.Reason != Expired || lost.Last == nil || !strings.Contains(lost.Last.Error(), "no credentials today") {
			t.Errorf("%v", l.Err())
		}
		p.mustHold(t)
		if took := p.at.Sub(failing); p.at.Before(ended) || took > 11800*time.Millisecond {
			t.Errorf("B has it after %v", took)
		}
		_, err := a.Acquire(w.ctx, "mails")
		if err == nil || !strings.Contains(err.Error(), "no credentials today") {
			t.Errorf("%v", err)
		}
	})
}

// A machine whose clock is wrong by hours signs by the server's clock after one refusal,
// for every kind of operation.
func TestSigningClockThatIsWrong(t *testing.T) {
	bubble(t, func(w *world) {
		w.server.SetClockTolerance(15 * time.Minute) // this machine lives years before the server
		a, b := w.client(), w.client()
		if _, err := a.TryAcquire(w.ctx, "orders"); err != nil {
			t.Fatal(err)
		}
		l := w.acquire(b, "mails")
		time.Sleep(30 * time.Second)
		w.server.SetClockOffset(serverAhead + time.Hour) // and now an hour more
		time.Sleep(30 * time.Second)
		if l.Err() != nil {
			t.Errorf("%v", l.Err())
		}
		w.server.SetClockOffset(serverAhead)
		w.release(l)
		refused := 0
		for _, r := range w.server.Requests().Log() {
			if r.Outcome == "InvalidSignatureException" {
				refused++
			}
		}
		if refused < 3 || refused > 5 {
			t.Errorf("%d requests were refused for their time of signing", refused)
		}
	})
}
