package telemetry

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"deed.dev/deed/internal/action"
)

// Figures are what the metrics show, at one moment.
type Figures struct {
	Reconciling    int           // unknown, and deed looks for evidence
	ReviewRequired int           // unknown, and a person is waited for
	Delegated      int           // their target is at work on them
	Overdue        int           // reconciling for longer than the contract says
	OldestUnknown  time.Duration // age of the oldest of the first two; 0 when there is none
	VaultLocked    bool
	Records        int64 // in the journal
}

// timeout bounds one reading of the figures.
const timeout = 10 * time.Second

// New makes the handler of GET /metrics. read is called once for each request; if it fails, the request does, so that a
// record that cannot be read never looks like an empty backlog.
func New(read func(context.Context) (Figures, error)) (http.Handler, error) {
	registry := prometheus.NewRegistry()
	out, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("set up metrics: %w", err)
	}
	meter := sdk.NewMeterProvider(sdk.WithReader(out), sdk.WithResource(resource.Empty())).Meter("deed.dev/deed")
	s := &scrape{registry: registry, read: read}
	if err := s.observe(meter); err != nil {
		return nil, fmt.Errorf("set up metrics: %w", err)
	}
	return promhttp.HandlerFor(prometheus.GathererFunc(s.gather), promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}), nil
}

// scrape is one reading at a time: figures are read first and shown then.
type scrape struct {
	registry *prometheus.Registry
	read     func(context.Context) (Figures, error)

	mu  sync.Mutex
	now Figures
}

func (s *scrape) gather() ([]*dto.MetricFamily, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.now, err = s.read(ctx); err != nil {
		return nil, fmt.Errorf("the records could not be read: %w", err)
	}
	return s.registry.Gather()
}

// observe makes the instruments. Prometheus joins the parts of a name with "_" and adds the unit's name.
func (s *scrape) observe(meter metric.Meter) error {
	type part = struct {
		value func(Figures) int64
		as    metric.MeasurementOption
	}
	recovery := func(r action.Recovery) metric.MeasurementOption {
		return metric.WithAttributes(attribute.String("recovery", string(r)))
	}
	all := metric.WithAttributes()
	for _, g := range []struct {
		name, unit, meaning string
		parts               []part
	}{
		{"deed.actions.unknown", "{action}", "Actions whose effect may have happened: deed looks for evidence, or a person has to.", []part{
			{func(f Figures) int64 { return int64(f.Reconciling) }, recovery(action.Reconciling)},
			{func(f Figures) int64 { return int64(f.ReviewRequired) }, recovery(action.ReviewRequired)},
		}},
		{"deed.actions.delegated", "{action}", "Actions that their target has accepted and finishes later.", []part{{func(f Figures) int64 { return int64(f.Delegated) }, all}}},
		{"deed.actions.overdue", "{action}", "Unknown actions for which deed has looked for evidence longer than their contract says.", []part{{func(f Figures) int64 { return int64(f.Overdue) }, all}}},
		{"deed.unknown.oldest_age", "s", "How long the oldest unknown action has been unknown; 0 when there is none.", []part{{func(f Figures) int64 { return int64(f.OldestUnknown / time.Second) }, all}}},
		{"deed.vault.locked", "", "1 while the credentials are locked, so that nothing is sent.", []part{{func(f Figures) int64 { return one(f.VaultLocked) }, all}}},
		{"deed.journal.records", "{record}", "Records in the journal.", []part{{func(f Figures) int64 { return f.Records }, all}}},
	} {
		gauge := func(_ context.Context, o metric.Int64Observer) error {
			for _, p := range g.parts {
				o.Observe(p.value(s.now), p.as)
			}
			return nil
		}
		if _, err := meter.Int64ObservableGauge(g.name, metric.WithUnit(g.unit), metric.WithDescription(g.meaning), metric.WithInt64Callback(gauge)); err != nil {
			return err
		}
	}
	return nil
}

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
