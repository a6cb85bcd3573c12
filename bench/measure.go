package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// measured is one row: the median run.
type measured struct {
	rate          float64 // per second
	p50, p95, p99 time.Duration
	cpu           time.Duration // of this process, per call
}

// load runs call from so many agents for a while.
func load(ctx context.Context, agents int, length time.Duration, call func(ctx context.Context, agent, n int) error) (measured, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	var wg sync.WaitGroup
	cpu, started := cpuTime(), time.Now()
	for agent := range agents {
		wg.Go(func() {
			var mine []time.Duration
			for n := 0; time.Since(started) < length && ctx.Err() == nil; n++ {
				begun := time.Now()
				if err := call(ctx, agent, n); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
					cancel()
					return
				}
				mine = append(mine, time.Since(begun))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
		})
	}
	wg.Wait()
	took := time.Since(started)
	if failed != nil || len(all) == 0 {
		return measured{}, failed
	}
	slices.Sort(all)
	return measured{
		rate: float64(len(all)) / took.Seconds(), p50: round(all[len(all)/2]), p95: round(all[len(all)*95/100]), p99: round(all[len(all)*99/100]),
		cpu: round((cpuTime() - cpu) / time.Duration(len(all))),
	}, nil
}

func round(d time.Duration) time.Duration { return d.Round(time.Microsecond) }

// median picks the run with the middle rate.
func median(runs []measured) measured {
	slices.SortFunc(runs, func(a, b measured) int {
		switch {
		case a.rate < b.rate:
			return -1
		case a.rate > b.rate:
			return 1
		default:
			return 0
		}
	})
	return runs[len(runs)/2]
}

// inTurn runs each contender once per round, so that a machine that slows down slows all of them.
func inTurn(s settings, contenders map[string]func() (measured, error)) (map[string]measured, error) {
	runs := map[string][]measured{}
	for range s.runs {
		for name, run := range contenders {
			m, err := run()
			if err != nil {
				return nil, err
			}
			runs[name] = append(runs[name], m)
		}
	}
	out := map[string]measured{}
	for name, all := range runs {
		out[name] = median(all)
	}
	return out, nil
}

// fsyncProbe appends 4 KiB and syncs, over and over: what a durable record costs on this disk at the least.
func fsyncProbe(s settings) (measured, error) {
	dir, err := os.MkdirTemp("", "deed-bench-")
	if err != nil {
		return measured{}, err
	}
	defer os.RemoveAll(dir)
	f, err := os.Create(filepath.Join(dir, "probe"))
	if err != nil {
		return measured{}, err
	}
	defer f.Close()
	page := make([]byte, 4096)
	found, err := inTurn(s, map[string]func() (measured, error){"probe": func() (measured, error) {
		return load(context.Background(), 1, s.duration, func(context.Context, int, int) error {
			if _, err := f.Write(page); err != nil {
				return err
			}
			return f.Sync()
		})
	}})
	return found["probe"], err
}
