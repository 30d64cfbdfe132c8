package emulator_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lockstream/lockstream/internal/emulator"
)

// noEndpoint makes a test independent of an endpoint in the environment it runs in.
func noEndpoint(t *testing.T) {
	t.Helper()
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_DYNAMODB_STREAMS"} {
		t.Setenv(name, "")
	}
}

func TestFromEnvironment(t *testing.T) {
	const service, local, other = "https://dynamodb.eu-west-1.amazonaws.com", "http://localhost:8000", "http://127.0.0.1:9000"
	for _, test := range []struct {
		name                     string
		general, tables, streams string
		want, wantStreams        string // want empty: nothing found
	}{
		{name: "nothing set"},
		{name: "only streams set", streams: other},
		{name: "tables only, emulator", tables: local, want: local, wantStreams: local},
		{name: "tables only, AWS", tables: service, want: service},
		{name: "general", general: local, want: local, wantStreams: local},
		{name: "tables before general", general: local, tables: other, want: other, wantStreams: local},
		{name: "streams before general", general: local, tables: other, streams: other, want: other, wantStreams: other},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("AWS_ENDPOINT_URL", test.general)
			t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", test.tables)
			t.Setenv("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", test.streams)
			e, found, err := emulator.FromEnvironment()
			if err != nil {
				t.Fatal(err)
			}
			if found != (test.want != "") {
				t.Fatalf("found = %v", found)
			}
			if !found {
				return
			}
			if e.Endpoint() != test.want || e.PID() != 0 {
				t.Errorf("endpoint %s, pid %d", e.Endpoint(), e.PID())
			}
			streams, err := e.StreamsClient(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := aws.ToString(streams.Options().BaseEndpoint); got != test.wantStreams {
				t.Errorf("streams endpoint %q, want %q", got, test.wantStreams)
			}
			if err := e.Stop(); err != nil {
				t.Errorf("Stop: %v", err)
			}
		})
	}
}

func TestFromEnvironmentRefusesWhatIsNoURL(t *testing.T) {
	for _, bad := range []string{"localhost:8000", "ftp://localhost", "http://", "://"} {
		noEndpoint(t)
		t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", bad)
		if _, _, err := emulator.FromEnvironment(); err == nil {
			t.Errorf("%q: no error", bad)
		}
		if _, err := emulator.Open(t.Context()); err == nil {
			t.Errorf("Open with %q: no error", bad)
		}
		t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://localhost:8000")
		t.Setenv("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", bad)
		if _, _, err := emulator.FromEnvironment(); err == nil {
			t.Errorf("streams %q: no error", bad)
		}
	}
}

func TestCredentialsOfAGivenEndpoint(t *testing.T) {
	for _, test := range []struct{ name, endpoint, key, wantKey, wantRegion string }{
		{"loopback without credentials", "http://127.0.0.1:8000", "", "emulator", "eu-north-1"},
		{"loopback with credentials", "http://[::1]:8000", "AKIDEXAMPLE", "AKIDEXAMPLE", "eu-north-1"},
		{"AWS", "https://dynamodb.eu-north-1.amazonaws.com", "AKIDEXAMPLE", "AKIDEXAMPLE", "eu-north-1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			noEndpoint(t)
			t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", test.endpoint)
			t.Setenv("AWS_REGION", test.wantRegion)
			t.Setenv("AWS_PROFILE", "")
			t.Setenv("AWS_ACCESS_KEY_ID", test.key)
			t.Setenv("AWS_SECRET_ACCESS_KEY", test.key)
			t.Setenv("AWS_SESSION_TOKEN", "")
			e, err := emulator.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := e.Config(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got, err := cfg.Credentials.Retrieve(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got.AccessKeyID != test.wantKey || cfg.Region != test.wantRegion {
				t.Errorf("key %q, region %q", got.AccessKeyID, cfg.Region)
			}
			if given := slices.ContainsFunc(e.Environ(), func(v string) bool { return strings.HasPrefix(v, "AWS_ACCESS_KEY_ID=") }); given != (test.key == "") {
				t.Errorf("Environ: %d variables, credentials among them: %v", len(e.Environ()), given)
			}
		})
	}
}

func TestBinaryIsMissing(t *testing.T) {
	noEndpoint(t)
	dir := t.TempDir()
	notExecutable := filepath.Join(dir, "file")
	if err := os.WriteFile(notExecutable, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "none"), dir, notExecutable} {
		t.Setenv(emulator.EnvBinary, path)
		_, err := emulator.Open(context.Background())
		if !errors.Is(err, emulator.ErrNotInstalled) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want ErrNotInstalled with the path", path, err)
		}
	}
}

func TestNotSetUp(t *testing.T) {
	noEndpoint(t)
	t.Setenv(emulator.EnvBinary, "")
	root := t.TempDir()
	inner := filepath.Join(root, "infra")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, module := range map[string]string{root: "github.com/lockstream/lockstream", inner: "github.com/lockstream/lockstream/infra"} {
		if err := os.WriteFile(filepath.Join(path, "go.mod"), []byte("// a comment\nmodule "+module+" // here\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(inner)
	_, err := emulator.Start(t.Context())
	if !errors.Is(err, emulator.ErrNotInstalled) {
		t.Fatalf("%v, want ErrNotInstalled", err)
	}
	resolved, evalErr := filepath.EvalSymlinks(root)
	if evalErr != nil {
		t.Fatal(evalErr)
	}
	setup := strings.HasSuffix(err.Error(), "run make setup in "+resolved) || strings.HasSuffix(err.Error(), "run make setup in "+root)
	if other := strings.Contains(err.Error(), "set AWS_ENDPOINT_URL_DYNAMODB"); !setup && !other {
		t.Errorf("error %q does not say what to do", err)
	}
}
