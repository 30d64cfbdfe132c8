// Package lockitem is the only place that knows what a lock looks like in DynamoDB:
// how a name becomes a key, how an item is read strictly, which condition and effect
// each operation has, and which kind of change two images of an item show.
//
// # Item
//
// One lock is one item. A lock is free when the item is absent or carries isReleased;
// otherwise it is held. Every write sets a fresh record version number (RVN), so an
// RVN names one state of the item. The fencing token rises with every acquire,
// hand-over and takeover and never with a renewal or release.
//
// # Writes
//
// Every write is an UpdateItem with a condition and with #names and :values only, so
// that attributes of others survive and no name collides with a reserved word. Asked
// for on failure is ALL_OLD: the loser of a race learns the present state for free.
//
// # Reading
//
// Decode refuses an attribute of a wrong type with a *TypeError instead of taking it
// for empty, and an item without a record version number with ErrNotALock. Durations
// are read in both forms that are found in the field: decimal milliseconds ("20000")
// and a Go duration ("20s").
package lockitem
