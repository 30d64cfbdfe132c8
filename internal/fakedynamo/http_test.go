package fakedynamo_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lockstream/lockstream/internal/fakedynamo"
)

// post sends a raw request and gives the status, the header and the body.
func post(t *testing.T, url, target, body string) (int, http.Header, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Amz-Target", target)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return resp.StatusCode, resp.Header, out
}

func TestProtocol(t *testing.T) {
	s := newServer(t)
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	for name, c := range map[string]struct{ target, body, want string }{
		"no target":         {"", "{}", "UnknownOperationException"},
		"unknown operation": {"DynamoDB_20120810.Nothing", "{}", "UnknownOperationException"},
		"wrong service":     {"DynamoDB_20120810.GetRecords", "{}", "UnknownOperationException"},
		"no JSON":           {"DynamoDB_20120810.GetItem", "{", "SerializationException"},
		"wrong type":        {"DynamoDB_20120810.GetItem", `{"TableName":1}`, "SerializationException"},
		"wrong key":         {"DynamoDB_20120810.GetItem", `{"TableName":"locks","Key":["a"]}`, "SerializationException"},
		"bad base64":        {"DynamoDB_20120810.GetItem", `{"TableName":"locks","Key":{"id":{"B":"%"}}}`, "SerializationException"},
		"two types":         {"DynamoDB_20120810.GetItem", `{"TableName":"locks","Key":{"id":{"S":"a","N":"1"}}}`, "ValidationException"},
		"no type":           {"DynamoDB_20120810.GetItem", `{"TableName":"locks","Key":{"id":{}}}`, "ValidationException"},
		"unknown type":      {"DynamoDB_20120810.GetItem", `{"TableName":"locks","Key":{"id":{"X":"a"}}}`, "ValidationException"},
		"no table":          {"DynamoDB_20120810.GetItem", `{}`, "ValidationException"},
		"empty body":        {"DynamoDB_20120810.DescribeTable", ``, "ValidationException"},
	} {
		t.Run(name, func(t *testing.T) {
			status, header, body := post(t, web.URL, c.target, c.body)
			kind, _ := body["__type"].(string)
			if status != http.StatusBadRequest || !strings.HasSuffix(kind, "#"+c.want) || body["message"] == "" || header.Get("X-Amzn-Requestid") == "" || header.Get("Date") == "" {
				t.Errorf("got %d %v %v", status, header, body)
			}
		})
	}
	status, header, body := post(t, web.URL, "DynamoDB_20120810.ListTables", `{"Unknown":{"a":1}}`)
	if status != http.StatusOK || header.Get("Content-Type") != "application/x-amz-json-1.0" || len(body["TableNames"].([]any)) != 1 {
		t.Errorf("got %d %v %v", status, header, body)
	}
	s.SetDateHeader(false)
	if _, header, _ := post(t, web.URL, "DynamoDB_20120810.ListTables", `{}`); header.Get("Date") != "" {
		t.Errorf("the date is %s", header.Get("Date"))
	}
}

func TestBrokenConnections(t *testing.T) {
	s := newServer(t)
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	for name, f := range map[string]fakedynamo.Fault{
		"reset":     {Reset: true},
		"truncated": {TruncateBody: true},
	} {
		always(s, f)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL, strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
