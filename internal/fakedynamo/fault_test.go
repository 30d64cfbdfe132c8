package fakedynamo_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo"
)

// always gives every request the same fault.
func always(s *fakedynamo.Server, f fakedynamo.Fault) {
	s.Intercept(func(context.Context, *fakedynamo.Request) fakedynamo.Fault { return f })
}

// faultCases are faults of an update, through both fronts. The caller waits 10 s.
var faultCases = map[string]struct {
	fault   fakedynamo.Fault
	applied bool          // when the caller comes back
	code    string        // of the service's error
	is      error         // another error
	takes   time.Duration // until the caller comes back
	outcome string
}{
	"none":          {applied: true, outcome: "ok"},
	"delay request": {fault: fakedynamo.Fault{DelayRequest: 3 * time.Second}, applied: true, takes: 3 * time.Second, outcome: "ok"},
	"delay request for too long": {
		fault: fakedynamo.Fault{DelayRequest: time.Minute}, is: context.DeadlineExceeded, takes: 10 * time.Second, outcome: "canceled",
	},
	"delay response": {fault: fakedynamo.Fault{DelayResponse: 3 * time.Second}, applied: true, takes: 3 * time.Second, outcome: "ok"},
	"delay response for too long": {
		fault: fakedynamo.Fault{DelayResponse: time.Minute}, applied: true, is: context.DeadlineExceeded, takes: 10 * time.Second, outcome: "canceled",
	},
	"drop request":         {fault: fakedynamo.Fault{DropRequest: true}, is: context.DeadlineExceeded, takes: 10 * time.Second, outcome: "canceled"},
	"drop request, reset":  {fault: fakedynamo.Fault{DropRequest: true, Reset: true}, is: syscall.ECONNRESET, outcome: "transport error"},
	"reset":                {fault: fakedynamo.Fault{Reset: true}, is: syscall.ECONNRESET, outcome: "transport error"},
	"reset after":          {fault: fakedynamo.Fault{Reset: true, AfterApply: true}, applied: true, is: syscall.ECONNRESET, outcome: "transport error"},
	"drop response":        {fault: fakedynamo.Fault{DropResponse: true}, applied: true, is: context.DeadlineExceeded, takes: 10 * time.Second, outcome: "canceled"},
	"drop response, reset": {fault: fakedynamo.Fault{DropResponse: true, Reset: true}, applied: true, is: syscall.ECONNRESET, outcome: "transport error"},
	"late within the wait": {fault: fakedynamo.Fault{ApplyLate: 5 * time.Second}, applied: true, is: context.DeadlineExceeded, takes: 10 * time.Second, outcome: "canceled"},
	"late, reset":          {fault: fakedynamo.Fault{ApplyLate: time.Minute, Reset: true}, is: syscall.ECONNRESET, outcome: "transport error"},
	"error": {
		fault: fakedynamo.Fault{Error: &fakedynamo.APIError{Code: "ThrottlingException", Message: "slow"}}, code: "ThrottlingException", outcome: "ThrottlingException",
	},
	"error after": {
		fault:   fakedynamo.Fault{Error: &fakedynamo.APIError{Code: "InternalServerError"}, AfterApply: true},
		applied: true, code: "InternalServerError", outcome: "InternalServerError",
	},
	"own error":       {fault: fakedynamo.Fault{Error: &types.RequestLimitExceeded{}}, code: "RequestLimitExceeded", outcome: "RequestLimitExceeded"},
	"transport error": {fault: fakedynamo.Fault{Error: io.ErrClosedPipe}, is: io.ErrClosedPipe, outcome: "transport error"},
	"conflict":        {fault: fakedynamo.Fault{TransactionConflict: true}, code: "TransactionConflictException", outcome: "TransactionConflictException"},
	"truncated":       {fault: fakedynamo.Fault{TruncateBody: true}, applied: true, is: io.ErrUnexpectedEOF, outcome: "ok"},
}

func TestFaults(t *testing.T) {
	for _, front := range []string{"http", "go"} {
		for name, c := range faultCases {
			t.Run(front+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newServer(t)
					always(s, c.fault)
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					start := time.Now()
					_, err := fronts(s)[front].UpdateItem(ctx, set("a", "x"))
					if took := time.Since(start); took != c.takes {
						t.Errorf("took %v, want %v", took, c.takes)
					}
					if (stored(s, "a") == "x") != c.applied {
						t.Errorf("applied: %v, want %v", !c.applied, c.applied)
					}
					if code(err) != c.code || (c.is != nil && !errors.Is(err, c.is)) || (err == nil) != (c.code == "" && c.is == nil) {
						t.Errorf("got %v, want %s %v", err, c.code, c.is)
					}
					if log := s.Requests().Log(); len(log) != 1 || log[0].Outcome != c.outcome || log[0].Key != "a" || log[0].Table != table || !log[0].At.Equal(start) {
						t.Errorf("the log is %+v", log)
					}
				})
			})
		}
	}
}

func TestLateRequestIsAppliedOnceByClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		always(s, fakedynamo.Fault{ApplyLate: 15 * time.Minute, Reset: true})
		in := set("a", "late")
		if _, err := s.API().UpdateItem(t.Context(), in); err == nil {
			t.Fatal("the caller was told of success")
		}
		in.ExpressionAttributeValues[":v"] = str("changed by the caller")
		start := time.Now()
		s.Close()
		s.Close()
		if took := time.Since(start); took != 15*time.Minute || stored(s, "a") != "late" || len(s.Records(table)) != 1 {
			t.Errorf("after %v the item is %q", took, stored(s, "a"))
		}
		if _, err := s.API().UpdateItem(t.Context(), in); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a closed server says %v", err)
		}
	})
}

func TestCloseEndsWaitingRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.Intercept(func(_ context.Context, r *fakedynamo.Request) fakedynamo.Fault {
			switch r.Key {
			case "drop":
				return fakedynamo.Fault{DropRequest: true}
			case "delay":
				return fakedynamo.Fault{DelayRequest: time.Hour}
			}
			return fakedynamo.Fault{Hold: make(chan struct{})}
		})
		errs := make(chan error)
		for _, id := range []string{"drop", "delay", "hold"} {
			go func() {
				_, err := once(s).UpdateItem(t.Context(), set(id, "x"))
				errs <- err
			}()
		}
		synctest.Wait()
		s.Close()
		for range 3 {
			if err := <-errs; !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		before, after := make(chan struct{}), make(chan struct{})
		always(s, fakedynamo.Fault{Hold: before, HoldResponse: after})
		done := make(chan error, 1)
		go func() {
			_, err := s.Client().UpdateItem(t.Context(), set("a", "x"))
			done <- err
		}()
		synctest.Wait()
		if log := s.Requests().Log(); len(log) != 1 || log[0].Outcome != "" || stored(s, "a") != "" {
			t.Fatalf("held back: %+v, %q", log, stored(s, "a"))
		}
		close(before)
		synctest.Wait()
		if stored(s, "a") != "x" || len(done) != 0 {
			t.Fatalf("between: %q, %d answers", stored(s, "a"), len(done))
		}
		after <- struct{}{}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

// The SDK's own retries pass in virtual time, and see a new arrival each.
func TestRetriesOfTheSDK(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, failing := range []string{"InternalServerError", "ThrottlingException", "ProvisionedThroughputExceededException", "reset"} {
			s := newServer(t)
			first := int64(0)
			s.Intercept(func(_ context.Context, r *fakedynamo.Request) fakedynamo.Fault {
				if first == 0 {
					first = r.Number
				}
				switch {
				case r.Number == first+2:
					return fakedynamo.Fault{}
				case failing == "reset":
					return fakedynamo.Fault{Reset: true}
				}
				return fakedynamo.Fault{Error: &fakedynamo.APIError{Code: failing}}
			})
			start := time.Now()
			if _, err := s.Client().UpdateItem(t.Context(), set("a", "x")); err != nil {
				t.Fatalf("%s: %v", failing, err)
			}
			if n := s.Requests().Count("UpdateItem"); n != 3 || time.Since(start) == 0 {
				t.Errorf("%s: %d requests in %v", failing, n, time.Since(start))
			}
		}
	})
}

func TestErrorsHaveStatusAndResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		for status, api := range map[int]*fakedynamo.APIError{
			http.StatusInternalServerError: {Code: "InternalServerError"},
			http.StatusServiceUnavailable:  {Code: "ServiceUnavailable"},
			http.StatusBadRequest:          {Code: "AccessDeniedException", Message: "no"},
			http.StatusForbidden:           {Code: "RequestTimeTooSkewed", Status: http.StatusForbidden},
		} {
			always(s, fakedynamo.Fault{Error: api})
			for name, db := range fronts(s) {
				_, err := db.UpdateItem(t.Context(), set("a", "x"))
				r, ok := errors.AsType[*awshttp.ResponseError](err)
				if !ok || code(err) != api.Code || r.HTTPStatusCode() != status || r.RequestID == "" || r.Response.Header.Get("Date") == "" {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	})
}

func TestTransactionConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		always(s, fakedynamo.Fault{TransactionConflict: true})
		for name, db := range fronts(s) {
			_, err := db.TransactWriteItems(t.Context(), transaction("a", "b"))
			f, ok := errors.AsType[*types.TransactionCanceledException](err)
			if !ok || len(f.CancellationReasons) != 2 || aws.ToString(f.CancellationReasons[0].Code) != "TransactionConflict" || aws.ToString(f.CancellationReasons[1].Code) != "None" {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: key("a")}); err != nil {
				t.Errorf("%s: a read gives %v", name, err)
			}
		}
		if stored(s, "a") != "" {
			t.Error("the transaction was applied")
		}
	})
}

func TestInterceptorSeesTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		var seen []fakedynamo.Request
		s.Intercept(func(_ context.Context, r *fakedynamo.Request) fakedynamo.Fault {
			seen = append(seen, *r)
			return fakedynamo.Fault{}
		})
		for _, db := range fronts(s) {
			if _, err := db.UpdateItem(t.Context(), set("a", "x")); err != nil {
				t.Fatal(err)
			}
		}
		s.Intercept(nil)
		if _, err := s.API().TransactWriteItems(t.Context(), transaction("b", "c")); err != nil {
			t.Fatal(err)
		}
		if len(seen) != 2 || seen[1].Number != seen[0].Number+1 {
			t.Fatalf("seen %+v", seen)
		}
		for _, r := range seen {
			in, ok := r.Input.(*dynamodb.UpdateItemInput)
			if r.Op != "UpdateItem" || r.Table != table || r.Key != "a" || !ok || *in.UpdateExpression != "SET v = :v" {
				t.Errorf("seen %+v", r)
			}
		}
		if log := s.Requests().Log(); len(log) != 3 || log[2].Op != "TransactWriteItems" || log[2].Key != "b" {
			t.Errorf("the log is %+v", log)
		}
	})
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.SetLatency(7 * time.Millisecond)
		for name, db := range fronts(s) {
			start := time.Now()
			if _, err := db.UpdateItem(t.Context(), set("a", "x")); err != nil || time.Since(start) != 7*time.Millisecond {
				t.Errorf("%s: %v after %v", name, err, time.Since(start))
			}
		}
	})
}
