package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// workerArgument makes this program a worker. It is not for people.
const workerArgument = "worker"

// child is one worker process, as the supervisor sees it.
type child struct {
	id, slot int
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	stderr   *tail

	// The fleet's goroutine owns these.
	ready  bool
	gone   bool // it was waited for
	doomed bool // its end is expected
}

// startChild starts a worker. Its events, and last that it is gone, go to events; the
// receiver must go on receiving until then.
func startChild(id, slot int, environ []string, events chan<- event) (*child, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{id: id, slot: slot, cmd: exec.Command(exe, workerArgument), stderr: &tail{}}
	c.cmd.Env = append(os.Environ(), environ...)
	c.cmd.Stderr = c.stderr
	c.cmd.SysProcAttr = ownGroup()
	c.cmd.WaitDelay = time.Second
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", workerName(id), err)
	}
	go func() {
		c.forward(stdout, events)
		end := event{At: now(), Kind: evGone, Worker: id}
		if err := c.cmd.Wait(); err != nil {
			end.Text = err.Error()
		}
		events <- end
	}()
	return c, nil
}

// forward passes on the worker's events until its output ends.
func (c *child) forward(stdout io.Reader, events chan<- event) {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		e := event{}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			e = event{At: now(), Kind: evFailed, Text: "unreadable event: " + err.Error()}
		}
		e.Worker = c.id
		events <- e
	}
}

// send gives the worker an order. A pipe takes many of them, also while the worker is stopped.
func (c *child) send(cmd command) error {
	line, err := json.Marshal(cmd)
	if err == nil {
		_, err = c.stdin.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("order %s for %s: %w", cmd.Do, workerName(c.id), err)
	}
	return nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// tailLimit is how much of a worker's error output is kept.
const tailLimit = 4 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailLimit; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
