//go:build !linux

package emulator

import "syscall"

// processAttributes is empty where there is no parent-death signal: there the emulator shares the process group, so
// that Ctrl-C in a terminal ends it too.
func processAttributes() *syscall.SysProcAttr { return nil }
