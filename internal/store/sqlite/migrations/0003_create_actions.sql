-- +goose Up

-- The table of docs/states.md. It is filled from the program's own table, and compared with it at every start.
create table legal_moves (
    name       text primary key,
    from_state text not null, -- '' for the first move
    to_state   text not null
) strict, without rowid;

create index legal_moves_by_states on legal_moves (from_state, to_state);

create table actions (
    seq            integer primary key, -- of the event that accepted it: newest first is by this
    id             text not null unique,
    intent         text not null references intents (id),
    run            text not null references runs (id),
    actor          text not null,
    tool           text not null,
    state          text not null constraint closed_states check (state = 'accepted' or state = 'awaiting_approval' or state = 'authorized'
                       or state = 'dispatched' or state = 'unknown' or state = 'completed' or state = 'failed'
                       or state = 'rejected'),
    coarse         text generated always as (case state
                       when 'accepted' then 'PENDING' when 'awaiting_approval' then 'PENDING' when 'authorized' then 'PENDING'
                       when 'dispatched' then 'INVOKED' when 'completed' then 'COMMITTED'
                       when 'failed' then 'FAILED' when 'rejected' then 'FAILED' else 'UNKNOWN' end) stored
                   constraint coarse_states check (coarse = 'PENDING' or coarse = 'INVOKED' or coarse = 'COMMITTED' or coarse = 'UNKNOWN'
                       or coarse = 'FAILED'),
    -- open is derived, but written by hand: moves between open states then leave the indexes on it alone.
    open           integer not null constraint open_is_not_final check (open = (state <> 'completed' and state <> 'failed' and state <> 'rejected')),
    delivery       text not null check (delivery = 'none' or delivery = 'pending' or delivery = 'interrupted'
                       or delivery = 'unconfirmed' or delivery = 'delivered'),
    failure_class  text not null check (failure_class = '' or failure_class = 'not_sent' or failure_class = 'rejected_by_target'
                       or failure_class = 'no_effect_confirmed'),
    reject_reason  text not null check (reject_reason = '' or reject_reason = 'denied' or reject_reason = 'vault_locked'
                       or reject_reason = 'policy' or reject_reason = 'revoked' or reject_reason = 'expired'
                       or reject_reason = 'cancelled'),
    recovery       text not null check (recovery = '' or recovery = 'reconciling' or recovery = 'review_required'),
    doubted        integer not null check (doubted in (0, 1)),
    reason         text not null,
    class          text not null check (class = 'read_only' or class = 'repeatable_with_key' or class = 'status_queryable'
                       or class = 'blocked_after_unknown'),
    contract       text not null,
    attempt        integer not null check (attempt >= 0),
    max_attempts   integer not null check (max_attempts >= attempt),
    not_before     integer,
    resend_before  integer,
    key_life       integer not null, -- microseconds
    attach_for     integer not null, -- microseconds
    channel        text not null,
    protocol       text not null check (protocol <> ''),
    host           text not null check (host <> ''),
    port           integer not null check (port between 1 and 65535),
    private        text not null, -- JSON list of address ranges, or ''
    method         text not null,
    path_template  text not null,
    credential     text not null,
    key_id         text not null,
    fingerprint    text not null,
    effect         text not null,
    args           text not null,
    resource       text not null,
    decision       text not null,
    decision_kind  text not null,
    decision_rule  text not null,
    binding_digest text not null,
    operation      text not null,
    repeats        text not null,
    similar        text not null,
    target_status  integer not null,
    result         text not null,
    repeat_token   text not null,
    trace_id       text not null,
    span_id        text not null,
    parent_span_id text not null,
    accepted_at    integer not null,
    authorized_at  integer,
    dispatched_at  integer,
    finished_at    integer,
    updated_at     integer not null,
    event_seq      integer not null, -- of the newest event about it
    event_hash     blob not null check (length(event_hash) = 32),
    constraint failed_has_a_class check ((state = 'failed') = (failure_class <> '')),
    constraint rejected_has_a_reason check ((state = 'rejected') = (reject_reason <> '')),
    constraint unknown_has_a_way_out check ((state = 'unknown') = (recovery <> '')),
    constraint finished_has_a_time check (open = (finished_at is null))
) strict;

-- Every question that is asked while a call waits is one look-up in one of these.
create index actions_by_intent on actions (intent);
create index actions_by_fingerprint on actions (fingerprint, open);
-- In doubt: unknown, or sent again while an earlier send is still unexplained.
create index actions_unknown_by_effect on actions (actor, effect) where doubted = 1;
create index actions_unknown_by_resource on actions (actor, resource) where doubted = 1;
create unique index actions_one_token on actions (repeat_token) where repeat_token <> '';
create unique index actions_one_successor on actions (repeats) where repeats <> '';
create index actions_open on actions (tool, contract, key_id) where open = 1;

-- These serve people: runs, traces, targets, credentials, outcomes.
create index actions_by_run on actions (run);
create index actions_by_trace on actions (trace_id);
create index actions_by_host on actions (host);
create index actions_by_credential on actions (credential) where credential <> '';
create index actions_by_tool on actions (tool);
create index actions_final on actions (state) where open = 0;

-- +goose StatementBegin
create trigger actions_begin_accepted before insert on actions
when not exists (select 1 from legal_moves where from_state = '' and to_state = new.state)
begin
    select raise(abort, 'an action begins as accepted');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger actions_move_legally before update of state on actions
when not exists (select 1 from legal_moves where from_state = old.state and to_state = new.state)
begin
    select raise(abort, 'no legal move of an action');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger actions_stay_themselves before update of seq, id, intent, run, actor, tool, host, port, protocol, credential, operation on actions
begin
    select raise(abort, 'what an action is does not change');
end;
-- +goose StatementEnd

-- Delivery shares the row but is no state: it only ever gets more certain.
-- +goose StatementBegin
create trigger actions_stay_delivered before update of delivery on actions
when old.delivery = 'delivered' and new.delivery <> 'delivered'
begin
    select raise(abort, 'a delivered answer stays delivered');
end;
-- +goose StatementEnd
