package locktest

// Fault is what happens to a request of a client.
type Fault uint8

// The faults. After each of them the client does not know whether its write was applied.
const (
	passes     Fault = iota
	Fail             // not applied and answered with the service's internal error
	Hang             // not applied and never answered: the caller waits until it gives up
	LoseAnswer       // applied and never answered
)

// faults are a number of requests that meet one fault.
type faults struct {
	n int
	f Fault
}

// Next lets the next n requests that clients send about locks meet the fault, after those
// of earlier calls. The requests of Foreign holders and of DynamoDB's client never meet any.
func (t *Table) Next(n int, f Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n > 0 {
		t.faults = append(t.faults, faults{n, f})
	}
}

// Heal forgets the faults that have not been met yet. A request that hangs goes on hanging.
func (t *Table) Heal() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults = nil
}

// nextFault counts a request and returns its fault.
func (t *Table) nextFault(read bool) Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	if read {
		t.requests.Reads++
	} else {
		t.requests.Writes++
	}
	if len(t.faults) == 0 {
		return passes
	}
	next := &t.faults[0]
	f := next.f
	if next.n--; next.n == 0 {
		t.faults = t.faults[1:]
	}
	return f
}

// Requests are the requests about locks that clients have sent, whatever became of them.
type Requests struct {
	Reads  int
	Writes int
}

// Requests returns the counts since the table was made.
func (t *Table) Requests() Requests {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.requests
}
