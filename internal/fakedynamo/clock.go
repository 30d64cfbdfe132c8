package fakedynamo

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Now is the server's clock.
func (s *Server) Now() time.Time { return time.Now().Add(time.Duration(s.offset.Load())) }

// SetClockOffset sets how far the server's clock is ahead of time.Now. It
// moves the Date header, all times the server reports and the TTL.
func (s *Server) SetClockOffset(d time.Duration) { s.offset.Store(int64(d)) }

// SetClockTolerance makes the HTTP front refuse requests whose time of signing
// is further from the server's clock than d, with InvalidSignatureException.
// The service does so at 15 minutes. With 0, as at first, it takes any.
func (s *Server) SetClockTolerance(d time.Duration) { s.tolerance.Store(int64(d)) }

// SetDateHeader switches the Date header (and so the server time of the SDK's
// result metadata) on or off. It is on at first.
func (s *Server) SetDateHeader(on bool) { s.noDate.Store(!on) }

// checkClock compares the time of signing with the server's clock.
func (s *Server) checkClock(h http.Header) error {
	const format = "20060102T150405Z"
	tolerance := time.Duration(s.tolerance.Load())
	if tolerance == 0 {
		return nil
	}
	signed, err := time.Parse(format, h.Get("X-Amz-Date"))
	if err != nil {
		return fail("IncompleteSignatureException", "The request has no valid X-Amz-Date header")
	}
	now := s.Now().UTC()
	switch {
	case now.Sub(signed) > tolerance:
		return fail("InvalidSignatureException", "Signature expired: %s is now earlier than %s", signed.Format(format), now.Add(-tolerance).Format(format))
	case signed.Sub(now) > tolerance:
		return fail("InvalidSignatureException", "Signature not yet current: %s is still later than %s", signed.Format(format), now.Add(tolerance).Format(format))
	}
	return nil
}

// second is the current second of the server's clock. Making its texts is dear
// beside an operation, so the last one is kept.
func (s *Server) second() *second {
	now := s.Now().Unix()
	if d := s.lastSecond.Load(); d != nil && d.unix == now {
		return d
	}
	d := &second{unix: now, date: time.Unix(now, 0).UTC().Format(http.TimeFormat)}
	response := &smithyhttp.Response{Response: &http.Response{Header: http.Header{"Date": {d.date}}}}
	d.deserialize = func(context.Context, middleware.DeserializeInput) (out middleware.DeserializeOutput, md middleware.Metadata, err error) {
		out.RawResponse = response
		return out, md, nil
	}
	s.lastSecond.Store(d)
	return d
}

// second is a second, as a Date header and as a response that has nothing but
// this header. It is never changed.
type second struct {
	unix        int64
	date        string
	deserialize middleware.DeserializeHandlerFunc
}
