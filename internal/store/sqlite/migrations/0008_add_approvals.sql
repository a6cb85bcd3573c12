-- +goose Up

-- Requests to people, what they said, and what was taken back.
alter table actions add column approval text not null default ''; -- the request that it waits for, or waited for last
alter table actions add column decision_until integer; -- nothing is sent from then on
alter table actions add column withdrawn integer not null default 0 check (withdrawn in (0, 1)); -- revoked when it was sent already
alter table runs add column revoked_at integer;

create table approvals (
    id             text primary key,
    action         text not null references actions (id),
    run            text not null references runs (id),
    rule           text not null check (rule = 'each_use' or rule = 'run'),
    binding_digest text not null check (binding_digest <> ''),
    nonce          text not null unique check (nonce <> ''),
    expires_at     integer not null,
    needed         integer not null check (needed > 0),
    not_requester  integer not null check (not_requester in (0, 1)),
    state          text not null check (state = 'open' or state = 'approved' or state = 'denied' or state = 'void'),
    why            text not null,
    requested_at   integer not null,
    updated_at     integer not null,
    constraint void_says_why check ((state = 'void') = (why <> ''))
) strict, without rowid;

-- A person is asked once at a time about one thing.
create unique index approvals_one_open_action on approvals (action) where rule = 'each_use' and state = 'open';
create unique index approvals_one_open_run on approvals (run) where rule = 'run' and state = 'open';
create index approvals_of_run on approvals (run, rule, state);
create index approvals_by_action on approvals (action);
create index approvals_open on approvals (expires_at) where state = 'open';
create index actions_waiting on actions (approval) where state = 'awaiting_approval';

-- +goose StatementBegin
create trigger approvals_settle_once before update of state on approvals
when old.state = 'denied' or old.state = 'void' or new.state = 'open' or (old.state = 'approved' and new.state <> 'void')
begin
    select raise(abort, 'a decided request stays decided');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger approvals_stay_themselves before update of id, action, run, rule, binding_digest, nonce, expires_at, needed, not_requester on approvals
begin
    select raise(abort, 'what was asked does not change');
end;
-- +goose StatementEnd

create table approval_decisions (
    approval           text not null references approvals (id),
    approver           text not null check (approver <> ''),
    decision           text not null check (decision = 'approve' or decision = 'deny'),
    strength           text not null,
    key                blob not null,
    signature          blob not null check (length(signature) > 0),
    authenticator_data blob not null,
    client_data        blob not null,
    via                text not null,
    decided_at         integer not null,
    seq                integer not null, -- of the journal
    primary key (approval, approver)
) strict, without rowid;

-- +goose StatementBegin
create trigger kept_approvals before delete on approvals
begin
    select raise(abort, 'records are kept');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger kept_approval_decisions before delete on approval_decisions
begin
    select raise(abort, 'records are kept');
end;
-- +goose StatementEnd
