package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lockstream/lockstream/internal/emulator"
	"github.com/lockstream/lockstream/lockclient"
)

// world is a DynamoDB endpoint with the two tables of one phase.
type world struct {
	emulator  *emulator.Emulator
	db        *dynamodb.Client
	lockTable string
	counters  counters
	created   []string // tables to delete
}

// openWorld starts an emulator, or uses the endpoint of the environment, and creates the
// tables under names that nobody else uses. The caller closes it.
func openWorld(ctx context.Context) (*world, error) {
	e, err := emulator.Open(ctx)
	if err != nil {
		return nil, err
	}
	w := &world{emulator: e}
	limit := setUpLimit
	if w.given() {
		limit = remoteLimit
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the tables at %s were not ready after %v", e.Endpoint(), limit))
	defer cancel()
	if err := w.createTables(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = errors.Join(cause, err)
		}
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *world) createTables(ctx context.Context) error {
	db, err := w.emulator.Client(ctx)
	if err != nil {
		return err
	}
	prefix := "lockstream-fleet-" + strings.ToLower(rand.Text()[:10])
	w.db, w.lockTable = db, prefix+"-locks"
	w.counters = counters{db: db, table: prefix + "-counters"}

	c, err := lockclient.New(db, w.lockTable)
	if err != nil {
		return err
	}
	report, err := c.EnsureTable(ctx)
	if report.Created {
		w.created = append(w.created, w.lockTable)
	}
	if err := errors.Join(err, c.Close(ctx)); err != nil {
		return err
	}
	w.created = append(w.created, w.counters.table)
	return w.counters.create(ctx)
}

// given says that the endpoint came from the environment.
func (w *world) given() bool { return w.emulator.PID() == 0 }

// readCounters returns the counter of each lock.
func (w *world) readCounters(ctx context.Context, locks []string) (map[string]int, error) {
	all := map[string]int{}
	for _, lock := range locks {
		n, err := w.counters.read(ctx, lock)
		if err != nil {
			return nil, err
		}
		all[lock] = n
	}
	return all, nil
}

// close deletes the tables of a given endpoint, or ends the emulator with all it has.
func (w *world) close() error {
	if !w.given() {
		return w.emulator.Stop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var errs []error
	for _, table := range w.created {
		if _, err := w.db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(table)}); err != nil {
			errs = append(errs, fmt.Errorf("delete table %s: %w", table, err))
		}
	}
	return errors.Join(errs...)
}
