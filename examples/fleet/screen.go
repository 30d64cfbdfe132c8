package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/lockstream/lockstream/lockclient"
)

// The escape sequences of the view.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the alternate screen, no cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"

	bold, dim, red, green, yellow, cyan = "1", "2", "31", "32", "33", "36"
)

// keptNotes is how many lines of the story the view shows.
const keptNotes = 12

// screen redraws the state of the fleet in a terminal.
type screen struct {
	w     io.Writer
	size  func() (width, height int)
	paint painter
	notes []note
}

// newView returns the live view when out is a terminal, and plain lines otherwise.
func newView(out *os.File) view {
	if !term.IsTerminal(int(out.Fd())) || os.Getenv("TERM") == "dumb" {
		return newPlain(out)
	}
	s := &screen{w: out, paint: newPainter(out), size: func() (int, int) {
		width, height, err := term.GetSize(int(out.Fd()))
		if err != nil {
			return 80, 24
		}
		return width, height
	}}
	fmt.Fprint(out, enterScreen)
	return s
}

func (s *screen) close() { fmt.Fprint(s.w, leaveScreen) }

func (s *screen) note(n note) {
	s.notes = append(s.notes, n)
	s.notes = s.notes[max(0, len(s.notes)-keptNotes):]
}

func (s *screen) draw(state func() snapshot) {
	width, height := s.size()
	lines := s.lines(state(), width)
	if len(lines) > height {
		lines = lines[:height]
	}
	var b bytes.Buffer
	b.WriteString(home)
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(clip(line, width) + clearLine)
	}
	b.WriteString(clearBelow)
	_, _ = s.w.Write(b.Bytes()) // a terminal that is gone sends SIGHUP
}

func (s *screen) lines(st snapshot, width int) []string {
	right := fmt.Sprintf("about %.0f s left", st.left.Seconds())
	title := "Lockstream fleet"
	phase := "   phase " + st.title
	gap := strings.Repeat(" ", max(1, width-utf8.RuneCountInString(title+phase+right)))
	rule := s.paint.in(dim, strings.Repeat("─", width))
	lines := []string{
		s.paint.in(bold, title) + phase + gap + s.paint.in(dim, right), rule,
		s.paint.in(dim, rowLine("lock", "holder", "token", "held", "waiting", append([]any{"holds"}, wakeTitles...))),
	}
	for _, r := range st.rows {
		lines = append(lines, s.row(r))
	}
	lines = append(lines, rule, totals(st), s.requests(st), rule, s.paint.in(dim, "last hand-offs between processes"))
	for i := range keptHandoffs {
		line := ""
		if i < len(st.recent) {
			h := st.recent[i]
			line = fmt.Sprintf("%-8s %s → %s, %s after the release", h.from.lock, workerName(h.from.worker), workerName(h.to.worker), short(h.latency()))
		}
		lines = append(lines, line)
	}
	lines = append(lines, rule)
	for _, n := range s.notes {
		lines = append(lines, s.paint.in(dim, fmt.Sprintf("%5.1f s", n.at.Seconds()))+"  "+s.paint.in(moodColour(n.mood), n.text))
	}
	return lines
}

// wakeTitles head the columns that say how many of the holds were got by what: an event,
// a hand-over within the process, the end of a dead holder's lease, the first look, a poll.
var wakeTitles = []any{"event", "local", "expiry", "first", "poll", "other"}

var wakeColumns = []lockclient.Wake{
	lockclient.WakeEvent, lockclient.WakeHandOver, lockclient.WakeExpiry, lockclient.WakeImmediate, lockclient.WakePoll,
}

// wakeCells are the figures below the titles.
func wakeCells(r row) []any {
	cells, other := []any{r.holds}, r.holds
	for _, wake := range wakeColumns {
		n := r.wakes[string(wake)]
		cells, other = append(cells, n), other-n
	}
	return append(cells, other)
}

func rowLine(lock, holder, token, held, waiting string, figures []any) string {
	left := fmt.Sprintf("%-8s %-16s %-8s %7s  %-11s", lock, holder, token, held, waiting)
	return left + fmt.Sprintf(" %5v =%6v%6v%7v%6v%5v%6v", figures...)
}

func (s *screen) row(r row) string {
	holder, token, held, colour := "free", "", "", ""
	switch {
	case r.state != "":
		holder, colour = r.holder+" "+r.state, red
	case r.holder != "":
		holder, colour = r.holder, cyan
	}
	if r.holder != "" {
		token, held = fmt.Sprintf("…%07d", r.token%1e7), heldFor(r.since)
	}
	waiting := make([]string, len(r.waiting))
	for i, w := range r.waiting {
		waiting[i] = fmt.Sprintf("w%d", w)
	}
	line := rowLine(r.lock, holder, token, held, strings.Join(waiting, " "), wakeCells(r))
	if colour == "" {
		return line
	}
	// Only the holder's column, by its place in the line.
	return line[:9] + s.paint.in(colour, line[9:9+16]) + line[9+16:]
}

// heldFor is in steps that can be read while they change.
func heldFor(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds()/10*10)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func totals(st snapshot) string {
	text := fmt.Sprintf("hand-offs: %d within a process, %d between processes", st.local, st.remote)
	if st.p50 > 0 {
		text += fmt.Sprintf(": median %s, 99 %% %s (cool locks)", short(st.p50), short(st.p99))
	}
	return text
}

// requests is the line that the whole thing is about.
func (s *screen) requests(st snapshot) string {
	text := fmt.Sprintf("table requests of waiters that nothing asked for: %d", st.asked)
	switch {
	case st.polling:
		return s.paint.in(yellow, fmt.Sprintf("%s, %.1f a second for each", text, st.askedRate))
	case st.asked > 0:
		return s.paint.in(red, text)
	}
	return s.paint.in(green, text)
}

func moodColour(m mood) string {
	switch m {
	case fault:
		return red
	case good:
		return green
	}
	return ""
}

// painter colours text where the output shows colours.
type painter struct{ on bool }

func newPainter(out *os.File) painter {
	return painter{on: term.IsTerminal(int(out.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (p painter) in(colour, text string) string {
	if !p.on || colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// clip cuts a line to a width and keeps the escape sequences in it.
func clip(line string, width int) string {
	var b strings.Builder
	seen, escape := 0, false
	for _, r := range line {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		case seen == width:
			continue
		default:
			seen++
		}
		b.WriteRune(r)
	}
	return b.String()
}
