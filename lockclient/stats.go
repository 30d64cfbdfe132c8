package lockclient

// Stats is a look at what a client has in hand.
type Stats struct {
	Leases     int // leases that have not ended
	Contenders int // callers of Acquire that wait
	Names      int // locks of which something is remembered
}

// Stats returns the present counts. It sends nothing.
func (c *Client) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Stats{Leases: len(c.leases), Names: len(c.locks)}
	for _, slot := range c.locks {
		s.Contenders += len(slot.queue)
	}
	return s
}
