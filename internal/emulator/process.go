package emulator

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// errEnded marks a process that ended before it was stopped: in a start, most often because its port was taken.
var errEnded = errors.New("the emulator ended by itself")

// process is one running emulator. A goroutine owns it: it starts the process, waits for its end and closes done.
type process struct {
	cmd         *exec.Cmd
	pid         int
	output      *output
	stopTimeout time.Duration

	done    chan struct{}
	waitErr error // written before done is closed

	stopOnce sync.Once
	stopErr  error
}

func startProcess(opts Options, port int, readyLine string) (*process, error) {
	out := newOutput(readyLine)
	cmd := exec.Command(opts.Binary, "--host", "127.0.0.1", "--port", strconv.Itoa(port))
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = processAttributes()
	// Nothing of the caller's environment belongs there, least of all its credentials.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir()}

	p := &process{cmd: cmd, output: out, stopTimeout: opts.StopTimeout, done: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	p.pid = cmd.Process.Pid
	return p, nil
}

// run keeps its thread to itself for the life of the process: the kernel sends the parent-death signal when the thread
// that started the child ends, not when the whole parent does.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.waitErr = p.cmd.Wait()
	close(p.done)
}

func (p *process) ended() error {
	return fmt.Errorf("%w: %w: %s", errEnded, exitError(p.waitErr), p.output)
}

func exitError(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

func (p *process) stop() error {
	p.stopOnce.Do(func() {
		select {
		case <-p.done:
			p.stopErr = fmt.Errorf("emulator: process %d: %w", p.pid, p.ended())
		default:
			p.stopErr = p.end()
		}
	})
	return p.stopErr
}

// abandon ends a process whose start failed; that it has ended already is no error then.
func (p *process) abandon() error {
	var err error
	p.stopOnce.Do(func() { err = p.end() })
	return err
}

func (p *process) end() error {
	if p.signalAndWait(syscall.SIGTERM) || p.signalAndWait(syscall.SIGKILL) {
		return nil
	}
	return fmt.Errorf("emulator: process %d is still there %v after SIGKILL", p.pid, p.stopTimeout)
}

func (p *process) signalAndWait(sig syscall.Signal) bool {
	// A failure means that the process has ended, which done tells, or that the next signal has to do it.
	_ = p.cmd.Process.Signal(sig)
	timer := time.NewTimer(p.stopTimeout)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}
