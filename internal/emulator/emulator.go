package emulator

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
)

const (
	envEndpoint        = "AWS_ENDPOINT_URL"
	envDynamoDB        = "AWS_ENDPOINT_URL_DYNAMODB"
	envDynamoDBStreams = "AWS_ENDPOINT_URL_DYNAMODB_STREAMS"
)

// Emulator is a DynamoDB endpoint with streams: a process that this package started, or the endpoint that the
// environment names. Its methods may be called by several goroutines.
type Emulator struct {
	endpoint string
	streams  string   // empty: the SDK's own choice
	proc     *process // nil when the endpoint came from the environment
}

// Open returns the endpoint of the environment when it names one, and otherwise starts an emulator as [Start] does.
func Open(ctx context.Context, optFns ...func(*Options)) (*Emulator, error) {
	e, found, err := FromEnvironment()
	if err != nil {
		return nil, err
	}
	if found {
		return e, nil
	}
	return Start(ctx, optFns...)
}

// FromEnvironment returns the endpoint that AWS_ENDPOINT_URL_DYNAMODB or, without that, AWS_ENDPOINT_URL names, and
// false when neither is set. It sends nothing. A value that is no http or https URL is an error.
//
// The streams endpoint is AWS_ENDPOINT_URL_DYNAMODB_STREAMS or AWS_ENDPOINT_URL; without both it is the table's
// endpoint, because emulators serve both at one address, except where that is one of AWS's own.
func FromEnvironment() (*Emulator, bool, error) {
	general := os.Getenv(envEndpoint)
	tables := firstOf(os.Getenv(envDynamoDB), general)
	if tables == "" {
		return nil, false, nil
	}
	host, err := hostOf(tables)
	if err != nil {
		return nil, false, err
	}
	streams := firstOf(os.Getenv(envDynamoDBStreams), general)
	if streams == "" && !isAWS(host) {
		streams = tables
	}
	if streams != "" {
		if _, err := hostOf(streams); err != nil {
			return nil, false, err
		}
	}
	return &Emulator{endpoint: tables, streams: streams}, true, nil
}

// Endpoint is the base URL of the tables, such as "http://127.0.0.1:40123".
func (e *Emulator) Endpoint() string { return e.endpoint }

// PID is the process id of the emulator, and 0 when this package did not start it.
func (e *Emulator) PID() int {
	if e.proc == nil {
		return 0
	}
	return e.proc.pid
}

// Stop ends the emulator's process (SIGTERM, then SIGKILL after [Options].StopTimeout) and waits for it. It is safe to call
// more than once, and does nothing when this package did not start the emulator. It fails only when the process
// outlives the kill, or had ended by itself before.
func (e *Emulator) Stop() error {
	if e.proc == nil {
		return nil
	}
	return e.proc.stop()
}

// Environ lists the variables, as "NAME=value", that make an SDK client in a child process use this endpoint. For a
// started emulator these are endpoints, region and dummy credentials; for an endpoint of the environment only the
// endpoints, because region and credentials are the environment's own. Append it to [os.Environ].
func (e *Emulator) Environ() []string {
	vars := []string{envDynamoDB + "=" + e.endpoint}
	if e.streams != "" {
		vars = append(vars, envDynamoDBStreams+"="+e.streams)
	}
	if !e.dummyCredentials() {
		return vars
	}
	return append(
		vars,
		"AWS_REGION="+e.region(),
		"AWS_ACCESS_KEY_ID="+dummyKey,
		"AWS_SECRET_ACCESS_KEY="+dummySecret,
		"AWS_SESSION_TOKEN=",
		"AWS_EC2_METADATA_DISABLED=true",
	)
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func hostOf(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", fmt.Errorf("emulator: endpoint of the environment: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "", fmt.Errorf("emulator: endpoint of the environment: %q is not an http or https URL", endpoint)
	}
	return u.Hostname(), nil
}

func isAWS(host string) bool {
	for _, suffix := range []string{".amazonaws.com", ".amazonaws.com.cn", ".api.aws"} {
		if strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return false
}
