-- +goose Up

-- Who works on an action, what was learned of it apart from its attempts, and what it undoes.
alter table actions add column owner text not null default '';
alter table actions add column epoch integer not null default 0 check (epoch >= 0);
alter table actions add column job text not null default '';
alter table actions add column observations integer not null default 0 check (observations >= 0);
alter table actions add column finding text not null default '' check (finding = '' or finding = 'found' or finding = 'absent'
    or finding = 'absent_settled' or finding = 'pending' or finding = 'ended_without_effect' or finding = 'look_alike'
    or finding = 'contradictory');
alter table actions add column hinted integer not null default 0 check (hinted in (0, 1));
alter table actions add column abandoned integer not null default 0 check (abandoned in (0, 1));
alter table actions add column can_ask integer not null default 0 check (can_ask in (0, 1));
alter table actions add column review_after integer not null default 0; -- microseconds
alter table actions add column keep_result integer not null default 0; -- microseconds
alter table actions add column purged integer not null default 0 check (purged in (0, 1));
alter table actions add column compensates text not null default '';
alter table actions add column unknown_at integer;

-- The reconciler's one question: what is due. Actions that wait for the vault stand apart, so that a locked vault with many
-- of them costs nothing.
create index actions_due on actions ((reason = 'vault_locked'), coalesce(not_before, 0))
    where (state = 'unknown' and recovery = 'reconciling') or (state = 'dispatched' and job <> '');

create index actions_kept on actions (finished_at + keep_result) where open = 0 and purged = 0 and keep_result > 0;
create index actions_unknown on actions (recovery, unknown_at) where state = 'unknown';
create index actions_in_doubt on actions (unknown_at) where state = 'unknown' and abandoned = 0;
create index actions_overdue on actions (coalesce(unknown_at, 0) + review_after) where state = 'unknown' and recovery = 'reconciling';
create index actions_by_undone on actions (compensates) where compensates <> '';

-- One compensation that counts: another may follow only one that ended undecided.
create unique index actions_one_undo on actions (compensates)
    where compensates <> '' and reject_reason <> 'expired' and reject_reason <> 'cancelled';

create table observations (
    id         text primary key,
    action     text not null references actions (id),
    number     integer not null check (number > 0),
    kind       text not null check (kind = 'lookup' or kind = 'poll' or kind = 'late_answer' or kind = 'stale_outcome'),
    about      text not null,
    finding    text not null,
    certainty  text not null check (certainty = 'indeterminate' or certainty = 'effect_proven' or certainty = 'no_effect_proven'),
    status     integer not null,
    reason     text not null,
    remote     text not null,
    span_id    text not null,
    evidence   text not null,
    started_at integer,
    ended_at   integer
) strict, without rowid;

create index observations_by_action on observations (action, number);

-- +goose StatementBegin
create trigger kept_observations before delete on observations
begin
    select raise(abort, 'records are kept');
end;
-- +goose StatementEnd

-- Leases are no events: who lives now says nothing about what happened. They are emptied when the store is opened.
create table owners (
    id    text primary key,
    until integer not null
) strict, without rowid;

create table new_payloads (
    kind       text not null check (kind = 'arguments' or kind = 'operation' or kind = 'answer' or kind = 'answer_headers'
                   or kind = 'repeat' or kind = 'job' or kind = 'evidence'),
    owner      text not null check (owner <> ''),
    salt       blob not null check (length(salt) = 16),
    content    blob not null,
    commitment text not null,
    unique (kind, owner)
) strict;
insert into new_payloads select kind, owner, salt, content, commitment from payloads;
drop table payloads;
alter table new_payloads rename to payloads;
