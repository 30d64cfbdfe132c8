package examples_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/lockstream/lockstream/internal/emulator"
	"github.com/lockstream/lockstream/lockclient"
	"github.com/lockstream/lockstream/streamwatcher"
)

// TestMain gives the example an emulator, by the same variables that a user would set.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		e, err := emulator.Open(context.Background())
		if err != nil {
			log.Print(err)
			return 1
		}
		defer func() {
			if err := e.Stop(); err != nil {
				log.Print(err)
			}
		}()
		for _, v := range e.Environ() {
			name, value, _ := strings.Cut(v, "=")
			if err := os.Setenv(name, value); err != nil {
				log.Print(err)
				return 1
			}
		}
		return m.Run()
	}())
}

func Example() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	db := dynamodb.NewFromConfig(cfg)
	watcher, err := streamwatcher.New(db, dynamodbstreams.NewFromConfig(cfg), "locks")
	if err != nil {
		log.Fatal(err)
	}
	defer watcher.Close(ctx)
	client, err := lockclient.New(db, "locks", func(o *lockclient.Options) { o.Notifier = watcher })
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	if _, err := client.EnsureTable(ctx); err != nil {
		log.Fatal(err)
	}
	err = client.Do(ctx, "orders", func(ctx context.Context) error {
		lease, _ := lockclient.LeaseFromContext(ctx)
		fmt.Println("holding", lease.Name(), "until told otherwise:", lease.Valid())
		return nil // ctx ends when the lease does; lease.FencingToken() rises with every hold
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: holding orders until told otherwise: true
}

// TestReadmeShowsTheExample keeps the README's snippet and the compiled one the same.
func TestReadmeShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, body, ok := strings.Cut(string(source), "func Example() {\n")
	body, _, ended := strings.Cut(body, "\t// Output:")
	if !ok || !ended {
		t.Fatal("the example has another form")
	}
	var want strings.Builder
	for line := range strings.Lines(body) {
		want.WriteString(strings.TrimPrefix(line, "\t"))
	}
	if !strings.Contains(string(readme), "```go\n"+want.String()+"```\n") {
		t.Errorf("the README's first example is not this:\n%s", want.String())
	}
}
