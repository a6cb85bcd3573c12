package anchor

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"deed.dev/deed/internal/atomicfile"
	"deed.dev/deed/journal"
)

// The memory is what the places held when they were last asked, for a start when none of them can be reached. It lies under
// the writer's hand and proves nothing; it finds a store that was put back by accident, and it keeps the age of what is not
// anchored.
const (
	memoryName   = "anchored.json"
	memoryFormat = "deed-anchored/1"
	maxMemory    = 1 << 20
)

type memory struct {
	Format string        `json:"format"`
	Places []placeMemory `json:"places"`
}

type placeMemory struct {
	Name       string    `json:"name"`
	Checkpoint string    `json:"checkpoint"` // signed
	Cut        time.Time `json:"cut"`
	Kept       time.Time `json:"kept"`
}

// recall reads the memory. One that cannot be read is none: until a place answers, nothing new is sent then.
func (a *Anchor) recall() {
	if a.dir == "" {
		return
	}
	m, err := readMemory(filepath.Join(a.dir, memoryName))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		a.logger.Warn("what the places held before is not known", "error", err)
		return
	}
	for _, s := range a.sinks {
		for _, p := range m.Places {
			held, err := journal.ReadCheckpoint([]byte(p.Checkpoint))
			if p.Name == s.Place.Name() && err == nil {
				s.known, s.size, s.signed, s.cut, s.kept = true, held.Size, []byte(p.Checkpoint), p.Cut, p.Kept
			}
		}
	}
	a.advance(a.now()) // conservative: nothing after that checkpoint is known to be younger
}

func readMemory(path string) (m memory, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return m, err
	}
	if info.Size() > maxMemory {
		return m, errors.New("the memory is too large")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, err
	}
	if m.Format != memoryFormat {
		return m, errors.New("the memory has another format")
	}
	return m, nil
}

// checkMemory refuses a journal that is behind what this gateway has anchored before, whether or not a place can be asked.
func (a *Anchor) checkMemory(ctx context.Context, head Head) error {
	for _, s := range a.sinks {
		if !s.known {
			continue
		}
		held, err := journal.ReadCheckpoint(s.signed)
		if err != nil {
			return err
		}
		if held.Origin != head.Origin { // a new journal was begun
			a.forget(s, held.Origin)
			continue
		}
		if err := Continues(ctx, "the memory of "+s.Place.Name(), held, head); err != nil {
			return err
		}
	}
	return nil
}

func (a *Anchor) forget(s *sink, origin string) {
	a.logger.Warn("what a place held is of another journal and is forgotten", "place", s.Place.Name(), "origin", origin)
	a.mu.Lock()
	defer a.mu.Unlock()
	s.known, s.size, s.signed, s.cut, s.kept = false, 0, nil, time.Time{}, time.Time{}
	a.caught = time.Time{}
}

func (a *Anchor) saveNowAndThen() {
	a.mu.Lock()
	early := a.now().Before(a.saved.Add(remembered))
	a.mu.Unlock()
	if !early {
		a.save()
	}
}

// save writes the memory. An older one is correct too, so a failure is no more than a warning. Nobody who asks whether he may
// send waits for the disk here.
func (a *Anchor) save() {
	if a.dir == "" {
		return
	}
	a.saving.Lock()
	defer a.saving.Unlock()
	a.mu.Lock()
	m := memory{Format: memoryFormat, Places: []placeMemory{}}
	for _, s := range a.sinks {
		if s.known {
			m.Places = append(m.Places, placeMemory{s.Place.Name(), string(s.signed), s.cut, s.kept})
		}
	}
	a.saved = a.now()
	a.mu.Unlock()
	text, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = atomicfile.Write(filepath.Join(a.dir, memoryName), append(text, '\n'))
	}
	if err != nil {
		a.logger.Warn("what the places hold could not be remembered", "error", err)
	}
}
