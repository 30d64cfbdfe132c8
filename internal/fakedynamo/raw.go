package fakedynamo

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/lockstream/lockstream/internal/fakedynamo/expr"
)

// The methods of this file let a test look at tables and play another client.
// They pass no interceptor and appear in no counter.

// Item gives a copy of the item at a key, nil when there is no such item or
// table.
func (s *Server) Item(table string, key map[string]types.AttributeValue) map[string]types.AttributeValue {
	k, err := expr.CheckItem(key)
	if err != nil {
		return nil
	}
	item, err := s.read(table, k)
	if err != nil {
		return nil
	}
	return expr.CloneItem(item)
}

// PutRaw stores an item as another client would: whatever is there, and with a
// stream record.
func (s *Server) PutRaw(table string, item map[string]types.AttributeValue) error {
	w, err := s.prepare(writeInput{verb: verbPut, table: &table, attrs: item})
	if err != nil {
		return err
	}
	_, err = s.apply(w)
	return err
}

// DeleteRaw deletes an item as another client would, with a stream record. An
// absent item is no error.
func (s *Server) DeleteRaw(table string, key map[string]types.AttributeValue) error {
	w, err := s.prepare(writeInput{verb: verbDelete, table: &table, attrs: key})
	if err != nil {
		return err
	}
	_, err = s.apply(w)
	return err
}

// Records gives all records of the table's latest stream, as a reader would
// see them, in the order in which they were written.
func (s *Server) Records(table string) []streamtypes.Record {
	st, records := s.allRecords(table)
	out := make([]streamtypes.Record, 0, len(records))
	for _, r := range records {
		out = append(out, s.show(st, r))
	}
	return out
}

func (s *Server) allRecords(table string) (*stream, []record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.lookup(table)
	if t == nil || t.stream == nil {
		return nil, nil
	}
	var out []record
	for _, sh := range t.stream.shards {
		out = append(out, sh.records...)
	}
	return t.stream, out
}
