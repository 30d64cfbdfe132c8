package leases

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lockstream/lockstream/lockclient"
)

// stubEnv makes this test binary the server of the figure below.
const stubEnv = "LOCKSTREAM_BENCH_STUB"

// serveStub answers every write as if its condition held, with what it sets, until its
// standard input ends.
func serveStub() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(l.Addr())
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte() // the parent has ended
		os.Exit(0)
	}()
	_ = http.Serve(l, http.HandlerFunc(answerWrite))
}

func answerWrite(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Key                       map[string]json.RawMessage
		ExpressionAttributeNames  map[string]string
		ExpressionAttributeValues map[string]json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	out := in.Key
	for name, attr := range in.ExpressionAttributeNames {
		if v, ok := in.ExpressionAttributeValues[":"+name[1:]]; ok {
			out[attr] = v
		}
	}
	body := map[string]any{"Attributes": out}
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "GetItem") {
		body = map[string]any{}
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_ = json.NewEncoder(w).Encode(body)
}

// startStub runs the server in a process of its own and returns its address.
func startStub(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), stubEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + strings.TrimSpace(addr)
}

// processorTime is what this process has used, without its children.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestLeasesInRealTime(t *testing.T) {
	const lease = time.Minute
	n, watch, interval := size(10_000, 200), time.Minute, time.Duration(0) // as is the default
	if !*full {
		watch, interval = time.Second, 400*time.Millisecond
	}
	db := dynamodb.New(dynamodb.Options{
		Region: "local", BaseEndpoint: aws.String(startStub(t)), Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
		HTTPClient: awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) { tr.MaxIdleConnsPerHost = 64 }),
	})
	var mu sync.Mutex
	renewed, lost := 0, 0
	c, err := lockclient.New(db, tableName, func(o *lockclient.Options) {
		o.LeaseDuration, o.RenewInterval = lease, interval
		o.Observer.Renewed = func(string, int64) { mu.Lock(); renewed++; mu.Unlock() }
		o.Observer.Lost = func(e *lockclient.LostError) {
			if e.Reason != lockclient.Closed {
				mu.Lock()
				lost++
				mu.Unlock()
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, c)
	if _, err := c.Acquire(t.Context(), "warm"); err != nil {
		t.Fatal(err)
	}
	heap0, stacks0 := memory()
	goroutines0 := runtime.NumGoroutine()
	acquireAll(t, c, n)
	heap1, stacks1 := memory()
	goroutines := float64(runtime.NumGoroutine()-goroutines0) / float64(n)
	bytes := float64(heap1-heap0+stacks1-stacks0) / float64(n)

	start, used := time.Now(), processorTime(t)
	time.Sleep(watch) // this figure is one of real time
	cores := (processorTime(t) - used).Seconds() / time.Since(start).Seconds()
	mu.Lock()
	defer mu.Unlock()
	figure("leases", map[string]any{
		"leases": n, "lease_s": lease.Seconds(), "seconds": watch.Seconds(), "renewals": renewed, "lost": lost,
		"cores": cores, "bytes_each": bytes, "goroutines_each": goroutines,
	}, "%d leases of %v for %v through HTTP: %.3f cores for %d renewals (%d lost), %.0f B and %.2f goroutines for each lease",
		n, lease, watch, cores, renewed, lost, bytes, goroutines)
	if renewed < n/2 || lost > 0 {
		t.Errorf("%d renewals of %d leases, %d lost", renewed, n, lost)
	}
	if *full && (cores >= 0.5 || bytes > 10<<10 || goroutines > 1.1) {
		t.Errorf("leases are dear: %.2f cores, %.0f bytes and %.2f goroutines each", cores, bytes, goroutines)
	}
}

// acquireAll acquires n locks, some at a time.
func acquireAll(t *testing.T, c *lockclient.Client, n int) {
	t.Helper()
	slots := make(chan struct{}, 32)
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if _, err := c.Acquire(context.Background(), fmt.Sprint("lock-", i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
