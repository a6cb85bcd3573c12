-- +goose Up

create table attempts (
    action     text not null references actions (id),
    number     integer not null check (number > 0),
    id         text not null unique,
    state      text not null check (state = 'prepared' or state = 'not_sent' or state = 'sent' or state = 'completed'
                       or state = 'refused' or state = 'timeout' or state = 'transport_error'),
    certainty  text not null check (certainty = 'indeterminate' or certainty = 'effect_proven' or certainty = 'no_effect_proven'),
    bytes_sent integer not null check (bytes_sent >= -1),
    status     integer not null,
    reason     text not null,
    remote     text not null,
    span_id    text not null,
    retry_of   text not null,
    started_at integer,
    ended_at   integer,
    primary key (action, number)
) strict, without rowid;

-- +goose StatementBegin
create trigger attempts_stay_with_their_action before update of action, number, id on attempts
begin
    select raise(abort, 'an attempt belongs to one action');
end;
-- +goose StatementEnd

create table results (
    id           text primary key,
    action       text not null references actions (id),
    commitment   text not null,
    media_type   text not null,
    size         integer not null,
    complete     integer not null check (complete in (0, 1)),
    withheld     integer not null check (withheld in (0, 1)),
    repeat_token text not null
) strict, without rowid;

-- Nothing that an event made is deleted. A rebuild lifts these triggers, empties the tables and makes the rows again.
-- +goose StatementBegin
create trigger kept_runs before delete on runs
begin
    select raise(abort, 'records are kept');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger kept_intents before delete on intents
begin
    select raise(abort, 'records are kept');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger kept_calls before delete on calls
begin
    select raise(abort, 'records are kept');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger kept_actions before delete on actions
begin
    select raise(abort, 'records are kept');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger kept_attempts before delete on attempts
begin
    select raise(abort, 'records are kept');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger kept_results before delete on results
begin
    select raise(abort, 'records are kept');
end;
-- +goose StatementEnd

-- The five coarse states of a tool operation, for readers who know that table. It has one row for a key: when an
-- action ended undecided and another stands for the same intent, the newer one is what the key means now.
create view tool_operations as
select i.idem_key,
       a.run as run_id,
       a.tool,
       a.args as args_fingerprint,
       a.coarse as state,
       nullif(a.result, '') as result,
       strftime('%Y-%m-%dT%H:%M:%S', a.updated_at / 1000000, 'unixepoch') || printf('.%06dZ', a.updated_at % 1000000) as updated_at
from actions a
join intents i on i.id = a.intent
where not exists (select 1 from actions newer where newer.intent = a.intent and newer.seq > a.seq);
