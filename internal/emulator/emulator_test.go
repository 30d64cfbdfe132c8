//go:build unix

package emulator_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/lockstream/lockstream/internal/emulator"
	"github.com/lockstream/lockstream/internal/emulator/emulatortest"
)

func TestStartServesTablesAndStreams(t *testing.T) {
	e := emulatortest.ForTest(t)
	db, err := e.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	streams, err := e.StreamsClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("emulator-test-%d", time.Now().UnixNano())
	if _, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String(name),
		BillingMode:          types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: types.ScalarAttributeTypeS}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if _, err := db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(name)}); err != nil {
			t.Error(err)
		}
	})
	list, err := streams.ListStreams(t.Context(), &dynamodbstreams.ListStreamsInput{TableName: aws.String(name)})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Streams) != 1 {
		t.Errorf("%d streams, want 1", len(list.Streams))
	}
}

func TestStopEndsTheProcessAndIsSafeTwice(t *testing.T) {
	e, err := emulator.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pid := e.PID()
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("process %d does not run after Start: %v", pid, err)
	}
	for range 2 {
		if err := e.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Fatalf("process %d after Stop: %v, want no such process", pid, err)
		}
	}
}

func TestStopTellsOfAnEmulatorThatDied(t *testing.T) {
	e, err := emulator.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn := dial(t, e.Endpoint())
	if err := syscall.Kill(e.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitClosed(t, conn)
	// The connection closes a moment before the process has been waited for; a Stop in between is an orderly one.
	if err := e.Stop(); err != nil && !strings.Contains(err.Error(), "ended by itself") {
		t.Fatalf("Stop: %v", err)
	}
}

func TestSeveralRunSideBySide(t *testing.T) {
	noEndpoint(t)
	a, b := emulatortest.ForTest(t), emulatortest.ForTest(t)
	if a.Endpoint() == b.Endpoint() || a.PID() == b.PID() {
		t.Errorf("%s of %d and %s of %d, want two", a.Endpoint(), a.PID(), b.Endpoint(), b.PID())
	}
	if !strings.HasPrefix(a.Endpoint(), "http://127.0.0.1:") {
		t.Errorf("endpoint %s is not on the loopback", a.Endpoint())
	}
}

func dial(t *testing.T, endpoint string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(endpoint, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// waitClosed waits until the other side has gone, which is the event that the emulator's process has ended.
func waitClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) || err == nil {
		t.Fatalf("the emulator is still there: %v", err)
	}
}

// script writes a stand-in for the emulator. It is called as the emulator is: --host 127.0.0.1 --port N.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "emulator")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestStartTakesAnotherPortWhenItsOwnIsTaken(t *testing.T) {
	noEndpoint(t)
	real, err := emulator.Binary()
	if err != nil {
		t.Fatal(err)
	}
	tries := filepath.Join(t.TempDir(), "tries")
	path := script(t, fmt.Sprintf("echo $4 >>%s\nif [ $(wc -l <%s) -lt 3 ]; then echo port is taken >&2; exit 1; fi\nexec %s \"$@\"\n", tries, tries, real))
	e := emulatortest.ForTest(t, func(o *emulator.Options) { o.Binary = path })
	text, err := os.ReadFile(tries)
	if err != nil {
		t.Fatal(err)
	}
	ports := strings.Fields(string(text))
	if len(ports) != 3 || !strings.HasSuffix(e.Endpoint(), ":"+ports[2]) {
		t.Errorf("ports tried: %v, endpoint %s", ports, e.Endpoint())
	}
}

func TestStartGivesUp(t *testing.T) {
	for _, test := range []struct{ name, body, want string }{
		{"ends at once", "echo no such luck >&2; exit 3\n", "no such luck"},
		{"never listens", "exec sleep 60\n", "no answer within"},
		{"ignores SIGTERM", "trap '' TERM; exec sleep 60\n", "no answer within"},
		{"listens but never answers", "echo \"listening on http://$2:$4\"; exec sleep 60\n", "does not answer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			pidFile := filepath.Join(t.TempDir(), "pid")
			path := script(t, "echo $$ >"+pidFile+"\n"+test.body)
			t.Parallel() // only now: no script may be open for writing while another one is started
			_, err := emulator.Start(t.Context(), func(o *emulator.Options) {
				o.Binary, o.StartTimeout, o.StopTimeout = path, 2*time.Second, 500*time.Millisecond
			})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
			text, err := os.ReadFile(pidFile)
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("process %d was left behind: %v", pid, err)
			}
		})
	}
}
