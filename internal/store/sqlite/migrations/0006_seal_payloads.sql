-- +goose Up

-- Content is sealed from now on. What is there in the clear is sealed when the store is opened, since only the program has
-- the keys, and this table is dropped when no byte of it is left in the file.
alter table payloads rename to plain_payloads;

-- What is sealed in one change shares a lock, without which its key does not open it. To erase is to delete the row and to
-- overwrite the lock: when SQLite has moved a row from page to page, bytes of it stay behind in free parts of pages. Locks
-- do not move, since rows are only added at the end of their table, never deleted, and overwritten with as many bytes.
create table content_locks (
    slot integer primary key,
    lock blob not null check (length(lock) = 32)
) strict;

-- sealed holds salt and content: whoever has the commitment and the salt can try guesses.
create table payloads (
    kind       text not null check (kind = 'arguments' or kind = 'operation' or kind = 'answer' or kind = 'answer_headers'
                   or kind = 'repeat' or kind = 'job' or kind = 'evidence'),
    owner      text not null check (owner <> ''),
    sealed     blob not null check (length(sealed) >= 65),
    commitment text not null,
    slot       integer not null references content_locks (slot),
    unique (kind, owner)
) strict;

create index payloads_by_slot on payloads (slot);

-- Which keys have sealed anything, so that a key file which lacks one is noticed at the start.
create table content_keys (
    id text primary key check (id <> '')
) strict, without rowid;

-- +goose StatementBegin
create trigger kept_content_locks before delete on content_locks
begin
    select raise(abort, 'locks stay where they are');
end;
-- +goose StatementEnd

-- Who was shown content, made from events.
create table content_reads (
    seq    integer primary key,
    action text not null references actions (id),
    reader text not null check (reader <> ''),
    why    text not null check (why <> ''),
    kinds  text not null check (kinds <> ''),
    at     integer not null
) strict;

create index content_reads_by_action on content_reads (action);

-- +goose StatementBegin
create trigger kept_content_reads before delete on content_reads
begin
    select raise(abort, 'records are kept');
end;
-- +goose StatementEnd
