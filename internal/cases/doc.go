// Command cases checks docs/cases.md against the tests: every case that a finished part owes must be named by a test,
// and every id that a test names must be on the page. The page itself says how a test names a case.
//
// It prints what is wrong, a line for each part and a last line RESULT with JSON, and ends with status 1 when
// something is wrong. With -write it first brings the page's status column up to date.
package main
