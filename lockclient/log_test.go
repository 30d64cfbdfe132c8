package lockclient

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/lockstream/lockstream/internal/fakedynamo"
)

// Cases: P1, P2, A4
//
// Contention, recovered writes, loss and an orderly close log nothing
// above Debug, and never the payload.
func TestNothingOrdinaryIsLoggedAboveDebug(t *testing.T) {
	bubble(t, func(w *world) {
		var buf bytes.Buffer
		logged := func(o *Options) {
			o.Logger = slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: slog.LevelDebug}))
		}
		a, b := w.client(logged), w.client(logged)
		l := w.acquire(a, "orders", func(o *AcquireOptions) { o.Data = []byte("SECRET") })
		_, err := b.TryAcquire(w.ctx, "orders")
		wantErr(t, err, ErrHeld)
		w.fault("UpdateItem", 1, fakedynamo.Fault{DropResponse: true})
		time.Sleep(20 * time.Second)
		w.server.Intercept(nil)
		w.steal(l, "thief#1", false)
		<-l.Done()
		if err := a.Close(w.ctx); err != nil {
			t.Error(err)
		}
		text := buf.String()
		if !strings.Contains(text, "lease lost") {
			t.Errorf("the log is not the client's: %q", text)
		}
		if strings.Contains(text, "SECRET") {
			t.Error("the payload is in the log")
		}
		for line := range strings.Lines(text) {
			if !strings.Contains(line, "level=DEBUG") {
				t.Errorf("above Debug: %s", line)
			}
		}
	})
}
