-- +goose Up

-- Hashes of the journal's Merkle tree, beside those of its records: row seq holds the nodes that record seq completes, lowest
-- first. They are made from the journal and can be made again. Every second record completes one, so there is a row for each
-- odd number.
create table tree (
    seq   integer primary key check (seq % 2 = 1),
    nodes blob not null check (length(nodes) > 0 and length(nodes) % 32 = 0)
) strict;

-- The public keys that the journal names as its own, newest last: those of record 0 and of journal.key events.
create table log_keys (
    seq integer primary key,
    key text not null unique check (key <> '')
) strict;
