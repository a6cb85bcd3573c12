-- +goose Up

-- The journal is the authority. Every other table but payloads, contracts and legal_moves is made from it.
-- unique (prev) makes a fork impossible, even with a second writer.
create table journal (
    seq  integer primary key,
    prev blob not null unique check (length(prev) = 32),
    hash blob not null unique check (length(hash) = 32),
    body blob not null
) strict;

-- +goose StatementBegin
create trigger journal_is_not_changed before update on journal
begin
    select raise(abort, 'the journal is append-only');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger journal_is_not_cut before delete on journal
begin
    select raise(abort, 'the journal is append-only');
end;
-- +goose StatementEnd

-- The protected store: what the journal only commits to. Erasing a row here is allowed and leaves the record true.
create table payloads (
    kind       text not null check (kind = 'arguments' or kind = 'operation' or kind = 'answer' or kind = 'answer_headers'
                   or kind = 'repeat'),
    owner      text not null check (owner <> ''),
    salt       blob not null check (length(salt) = 16),
    content    blob not null,
    commitment text not null,
    unique (kind, owner)
) strict;

create table contracts (
    digest text primary key check (digest <> ''),
    tool   text not null,
    text   blob not null
) strict, without rowid;
