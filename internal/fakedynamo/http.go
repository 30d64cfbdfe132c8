package fakedynamo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

const contentType = "application/x-amz-json-1.0"

// answer is a response before it takes the form that its reader wants.
type answer struct {
	status   int
	header   http.Header
	body     []byte
	truncate bool
}

// Do implements the SDK's HTTPClient without a network.
func (s *Server) Do(req *http.Request) (*http.Response, error) {
	a, err := s.answer(req)
	if err != nil {
		return nil, err
	}
	var body io.Reader = bytes.NewReader(a.body)
	if a.truncate {
		body = io.MultiReader(bytes.NewReader(a.body[:len(a.body)/2]), brokenReader{})
	}
	return &http.Response{
		Status:     fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)),
		StatusCode: a.status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        a.header,
		Body:          io.NopCloser(body),
		ContentLength: int64(len(a.body)),
		Request:       req,
	}, nil
}

// brokenReader is the end of a body that was cut.
type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errTruncated }

// ServeHTTP implements http.Handler. A lost or broken answer aborts the
// connection.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	a, err := s.answer(req)
	if err != nil {
		panic(http.ErrAbortHandler) // the documented way to break a connection
	}
	for name, values := range a.header {
		w.Header()[name] = values
	}
	if len(a.header["Date"]) == 0 {
		w.Header()["Date"] = nil // keeps the HTTP server from adding its own
	}
	w.WriteHeader(a.status)
	if a.truncate {
		_, _ = w.Write(a.body[:len(a.body)/2])
		panic(http.ErrAbortHandler)
	}
	// A client that has gone is no concern of the server.
	_, _ = w.Write(a.body)
}

// answer carries a request out. The error is one of the transport or of the
// request's context.
func (s *Server) answer(req *http.Request) (*answer, error) {
	svc, name, ok := splitTarget(req.Header.Get("X-Amz-Target"))
	o, known := operations[name]
	if !ok || !known || o.service != svc {
		return s.answerFailure(fail(codeUnknownOp, "The operation %q is not supported", req.Header.Get("X-Amz-Target")), svc)
	}
	var body []byte
	if req.Body != nil {
		defer req.Body.Close()
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, fmt.Errorf("read the request: %w", err)
		}
	}
	in := o.newInput()
	if err := decodeInput(body, in); err != nil {
		var f *failure
		if errors.As(err, &f) {
			return s.answerFailure(f, svc)
		}
		return nil, err
	}
	res := s.serve(req.Context(), o, &Request{Op: name, Input: in, refused: s.checkClock(req.Header)})
	a, err := s.answerResult(res, svc)
	if err != nil {
		return nil, err
	}
	a.truncate = res.truncate
	return a, nil
}

// splitTarget reads the X-Amz-Target header.
func splitTarget(target string) (service, string, bool) {
	prefix, name, _ := strings.Cut(target, ".")
	switch prefix {
	case "DynamoDB_20120810":
		return serviceDB, name, true
	case "DynamoDBStreams_20120810":
		return serviceStreams, name, true
	}
	return serviceDB, "", false
}

func (s *Server) answerResult(res result, svc service) (*answer, error) {
	if res.err != nil {
		var f *failure
		if errors.As(res.err, &f) {
			return s.answerFailure(f, svc)
		}
		return nil, res.err
	}
	body, err := encodeJSON(res.out)
	if err != nil {
		return nil, err
	}
	return s.newAnswer(http.StatusOK, body), nil
}

func (s *Server) answerFailure(f *failure, svc service) (*answer, error) {
	body, err := encodeFailure(f, svc)
	if err != nil {
		return nil, err
	}
	return s.newAnswer(f.status, body), nil
}

func (s *Server) newAnswer(status int, body []byte) *answer {
	h := s.header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	return &answer{status: status, header: h, body: body}
}

// header has what both fronts give with every answer.
func (s *Server) header() http.Header {
	h := http.Header{"X-Amzn-Requestid": {s.requestID()}}
	if !s.noDate.Load() {
		h["Date"] = []string{s.second().date}
	}
	return h
}

// requestID makes an id of the service's form.
func (s *Server) requestID() string {
	return fmt.Sprintf("FAKE%048d", s.answers.Add(1))
}
