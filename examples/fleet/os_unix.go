//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// now reads the clock that all processes of this machine share.
func now() instant {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // the clock is there on every system that this file is built for
	}
	return instant(ts.Nano())
}

func supported() error { return nil }

func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func thaw(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// ownGroup keeps Ctrl-C in a terminal from the workers: the supervisor stops them in
// order. Should it be killed, the system continues a worker that is stopped, and the end
// of its standard input ends it.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// hasEnded asks the system whether there is no process with this id any more.
func hasEnded(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
