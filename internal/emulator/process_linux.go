package emulator

import "syscall"

// processAttributes puts the emulator into its own process group, so that Ctrl-C in a terminal reaches only the
// program that uses it, which still wants to release its locks; and lets the kernel kill it when its parent dies.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
