-- Backends, who works with them, which is the current one, and what proves that somebody may.

-- Which store this is, so that another's backup is not taken for its own.
CREATE TABLE store (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    identity BLOB NOT NULL CHECK (length(identity) = 16),
    -- the last backup that was brought back, by a token of that occasion; null: none ever was
    restoration TEXT
) STRICT;

INSERT INTO store (only, identity) VALUES (1, randomblob(16));

CREATE TABLE environment (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    -- JSON: what locates the backend. Nothing secret.
    definition BLOB NOT NULL,
    -- fingerprints of the definition's parts: a credential, a cache and a file belong to one each
    identity TEXT NOT NULL,
    data TEXT NOT NULL,
    storage TEXT NOT NULL,
    -- 1: destructive commands want the name repeated
    protected INTEGER NOT NULL CHECK (protected IN (0, 1)),
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL
) STRICT;

-- null: a store whose program names no environment has one partition, which belongs to none
ALTER TABLE partition ADD COLUMN environment INTEGER REFERENCES environment (id);
-- null: whoever is not signed in
ALTER TABLE partition ADD COLUMN user TEXT CHECK (user <> '');
-- when it was made, and when it was last made the current one
ALTER TABLE partition ADD COLUMN created INTEGER;
ALTER TABLE partition ADD COLUMN used INTEGER;

CREATE UNIQUE INDEX partition_owner ON partition (environment, ifnull(user, '')) WHERE environment IS NOT NULL;

-- No row: no environment was ever chosen.
CREATE TABLE current_partition (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    -- null: none is to be
    partition INTEGER REFERENCES partition (id),
    -- counts the switches
    number INTEGER NOT NULL,
    switched INTEGER NOT NULL
) STRICT;

-- The key of a partition's credentials, sealed with the program's. Without this row none of them can ever be read.
CREATE TABLE partition_key (
    partition INTEGER PRIMARY KEY REFERENCES partition (id),
    -- which of the program's keys it is sealed with
    sealed_with TEXT NOT NULL,
    sealed BLOB NOT NULL,
    created INTEGER NOT NULL
) STRICT;

CREATE TABLE credential (
    partition INTEGER NOT NULL REFERENCES partition (id),
    kind TEXT NOT NULL,
    -- the fingerprint of identity that it was issued under
    identity TEXT NOT NULL,
    sealed BLOB NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    PRIMARY KEY (partition, kind)
) STRICT, WITHOUT ROWID;

-- Credentials that could not be opened where they lay: not used, not waited for, not deleted.
CREATE TABLE quarantined_credential (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    partition INTEGER NOT NULL REFERENCES partition (id),
    kind TEXT NOT NULL,
    identity TEXT NOT NULL,
    sealed BLOB NOT NULL,
    reason TEXT NOT NULL,
    quarantined INTEGER NOT NULL
) STRICT;

CREATE INDEX quarantined_credential_partition ON quarantined_credential (partition);

-- Whether somebody is signed in. No row: unknown.
CREATE TABLE session (
    partition INTEGER PRIMARY KEY REFERENCES partition (id),
    state TEXT NOT NULL,
    reason TEXT,
    changed INTEGER NOT NULL
) STRICT;
