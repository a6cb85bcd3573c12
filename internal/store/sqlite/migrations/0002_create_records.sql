-- +goose Up

-- Times are integer microseconds since 1970, UTC; null where there is none. Absent text is ''.

create table runs (
    id          text primary key,
    key         text not null unique,
    kind        text not null,
    identity    text not null,
    strength    text not null check (strength = '' or strength = 'same_process' or strength = 'peer_uid' or strength = 'peer_pid'
                       or strength = 'peer_pidfd' or strength = 'bearer_token'),
    shared      integer not null check (shared in (0, 1)),
    pid         integer not null,
    start_ticks text not null,
    boot_id     text not null,
    executable  text not null,
    digest      text not null,
    via         text not null,
    started_at  integer not null
) strict, without rowid;

create table intents (
    id           text primary key,
    run          text not null references runs (id),
    tool         text not null,
    contract     text not null,
    idem_key     text not null unique check (idem_key <> ''),
    step         integer not null,
    tool_call_id text not null,
    key_source   text not null,
    arguments    text not null,
    logged_at    integer not null
) strict, without rowid;

-- Calls are evidence of messages. They refer to records without a foreign key: a refused call may name any.
create table calls (
    seq             integer primary key,
    id              text not null,
    event           text not null check (event = 'call.accepted' or event = 'call.attached' or event = 'call.held'
                       or event = 'call.refused' or event = 'call.left'),
    run             text not null,
    intent          text not null,
    action          text not null,
    actor           text not null,
    strength        text not null,
    transport       text not null,
    era             text not null,
    request_id      text not null,
    session         text not null,
    client          text not null,
    upstream_source text not null,
    traceparent     text not null,
    tracestate      text not null,
    idem_key        text not null, -- of an attached call that gave a key of its own
    match           text not null,
    prior_state     text not null,
    why             text not null,
    code            text not null,
    trace_id        text not null,
    span_id         text not null,
    parent_span_id  text not null,
    at              integer not null
) strict;

-- A call is answered once and may be left once.
create unique index calls_once on calls (id, event = 'call.left');

-- A key that attached to an action stays with it.
create index calls_by_key on calls (idem_key) where idem_key <> '' and event = 'call.attached';

create index calls_by_action on calls (action) where action <> '';
