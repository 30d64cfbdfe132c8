// Package deptest guards what the project's packages import: which part may know which other one, that testing gets
// into no binary, and that every direct dependency has its reason in docs/dependencies.md. It has tests only.
package deptest
