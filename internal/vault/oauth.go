package vault

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/sync/singleflight"
)

// tokens are the access tokens that client secrets were exchanged for, while they are good. They live in memory only.
type tokens struct {
	flights singleflight.Group
	mu      sync.Mutex
	byRef   map[string]accessToken
	dropped map[string]bool // a target refused the last one, and no new one is there yet
}

type accessToken struct {
	value   Secret
	fetched time.Time
	renewed bool      // it came in the place of a refused one
	good    time.Time // until then
}

const (
	beforeExpiry = 30 * time.Second // a token that ends within a request's time is not begun with
	usualLife    = 5 * time.Minute  // of a token whose server does not say
	longestLife  = 24 * time.Hour   // of a token, whatever its server says
	settling     = time.Second      // a token that came for a refused one is kept this long: whoever is refused now had the old one
)

func (t *tokens) get(ref string, now time.Time) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok := t.byRef[ref]
	if !ok || !now.Before(found.good) {
		return "", false
	}
	return found.value.Reveal(), true
}

func (t *tokens) put(ref string, a accessToken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byRef == nil {
		t.byRef = map[string]accessToken{}
	}
	a.renewed = t.dropped[ref]
	delete(t.dropped, ref)
	t.byRef[ref] = a
}

// refused drops a token that a target did not take. Several attempts may be refused at once; the first one's new token
// is for all of them.
func (t *tokens) refused(ref string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok := t.byRef[ref]
	if !ok || found.renewed && now.Sub(found.fetched) < settling {
		return
	}
	delete(t.byRef, ref)
	if t.dropped == nil {
		t.dropped = map[string]bool{}
	}
	t.dropped[ref] = true
}

func (t *tokens) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.byRef)
	clear(t.dropped)
}

// token gives an access token that is good for a while. However many ask at once, one request fetches it, and the fetch
// does not end with the one who asked first.
func (v *Vault) token(ctx context.Context, c Credential, clientSecret string) (string, error) {
	if have, ok := v.tokens.get(c.Ref, v.now()); ok {
		return have, nil
	}
	locks := v.locks.Load()
	key := fmt.Sprintf("%d %s", locks, c.Ref)
	fetched := v.tokens.flights.DoChan(key, func() (any, error) {
		if have, ok := v.tokens.get(c.Ref, v.now()); ok {
			return NewSecret(have), nil
		}
		got, err := v.fetchToken(context.WithoutCancel(ctx), c, clientSecret)
		if err != nil {
			return nil, err
		}
		v.mu.RLock() // no token is kept that was fetched before a lock
		defer v.mu.RUnlock()
		if v.Locked() || v.locks.Load() != locks {
			return nil, ErrLocked
		}
		v.tokens.put(c.Ref, got)
		return got.value, nil
	})
	select {
	case <-ctx.Done():
		return "", errors.New("its token did not come in time")
	case r := <-fetched:
		if r.Err != nil {
			return "", r.Err
		}
		return r.Val.(Secret).Reveal(), nil
	}
}

// fetchToken makes one request. What the server says is passed on as far as RFC 6749 has a word for it, and no further.
func (v *Vault) fetchToken(ctx context.Context, c Credential, clientSecret string) (accessToken, error) {
	cfg := clientcredentials.Config{
		ClientID: c.OAuth.ClientID, ClientSecret: clientSecret, TokenURL: c.OAuth.TokenURL, Scopes: c.OAuth.Scopes,
		AuthStyle: oauth2.AuthStyleInHeader,
	}
	if c.OAuth.InBody {
		cfg.AuthStyle = oauth2.AuthStyleInParams
	}
	if c.OAuth.Audience != "" {
		cfg.EndpointParams = url.Values{"audience": {c.OAuth.Audience}}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now := v.now()
	got, err := cfg.Token(context.WithValue(ctx, oauth2.HTTPClient, v.client()))
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.Response != nil && slices.Contains(tokenErrors, refused.ErrorCode):
		return accessToken{}, fmt.Errorf("its token server answered %d %s", refused.Response.StatusCode, refused.ErrorCode)
	case errors.As(err, &refused) && refused.Response != nil:
		return accessToken{}, fmt.Errorf("its token server answered %d", refused.Response.StatusCode)
	case err != nil:
		return accessToken{}, errors.New("its token server gave no usable answer")
	case !strings.EqualFold(got.Type(), "Bearer"):
		return accessToken{}, errors.New("its token server gave a token that is no bearer token")
	}
	life := usualLife
	if !got.Expiry.IsZero() { // reckoned from the clock of the system
		life = min(time.Until(got.Expiry), longestLife)
	}
	return accessToken{value: NewSecret(got.AccessToken), fetched: now, good: now.Add(max(0, life-beforeExpiry))}, nil
}

// tokenErrors are the words of RFC 6749, section 5.2.
var tokenErrors = []string{"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope"}
