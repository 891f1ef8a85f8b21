-- What a program wants done at its server. Times are milliseconds since 1970; ids are the 16 bytes of a UUID.

CREATE TABLE partition (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- A row that changes state is rewritten whole; what does not change meanwhile is kept in mutation_content.
CREATE TABLE mutation (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    partition INTEGER NOT NULL REFERENCES partition (id),
    lane TEXT NOT NULL,
    -- 0 pending, 1 in flight, 2 acknowledged, 3 dead letter
    state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 3),
    -- 1 if it waits, through however many others, for a dead letter: others of its lane go past it
    stalled INTEGER NOT NULL CHECK (stalled IN (0, 1)),
    -- 1 if it has a place in its lane. A column of its own, so that beginning an attempt leaves the lane's index alone.
    queued INTEGER NOT NULL CHECK (queued = (state < 2 AND stalled = 0)),
    attempts INTEGER NOT NULL CHECK (attempts >= 0),
    owner TEXT CHECK ((owner IS NOT NULL) = (state = 1)),
    -- null: the id in its canonical text form
    idempotency_key TEXT,
    created INTEGER NOT NULL,
    expires INTEGER,
    not_before INTEGER,
    -- when not_before was worked out by a clock that may have been set back since; null: not_before was given
    not_before_set INTEGER
) STRICT;

CREATE INDEX mutation_lane ON mutation (partition, lane, sequence) WHERE queued = 1;
CREATE INDEX mutation_in_flight ON mutation (partition, lane) WHERE state = 1;
CREATE INDEX mutation_done ON mutation (partition, state, sequence) WHERE state >= 2;
CREATE INDEX mutation_expiry ON mutation (partition, expires) WHERE state = 0 AND expires IS NOT NULL;
CREATE UNIQUE INDEX mutation_idempotency ON mutation (partition, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE TABLE mutation_content (
    sequence INTEGER PRIMARY KEY REFERENCES mutation (sequence) ON DELETE CASCADE,
    document TEXT NOT NULL,
    operation_name TEXT,
    variables BLOB NOT NULL,
    optimistic_response BLOB,
    list_edits BLOB,
    updater TEXT,
    resolver TEXT,
    check_query TEXT
) STRICT;

CREATE TABLE mutation_answer (
    sequence INTEGER PRIMARY KEY REFERENCES mutation (sequence) ON DELETE CASCADE,
    answer BLOB NOT NULL
) STRICT;

CREATE TABLE mutation_failure (
    sequence INTEGER PRIMARY KEY REFERENCES mutation (sequence) ON DELETE CASCADE,
    class TEXT NOT NULL,
    code TEXT,
    message TEXT NOT NULL,
    details BLOB,
    time INTEGER NOT NULL
) STRICT;

-- What a mutation still waits for: a dependency that is gone is settled, and so is its row here.
CREATE TABLE mutation_dependency (
    sequence INTEGER NOT NULL REFERENCES mutation (sequence) ON DELETE CASCADE,
    dependency INTEGER NOT NULL REFERENCES mutation (sequence) ON DELETE CASCADE CHECK (dependency < sequence),
    PRIMARY KEY (sequence, dependency)
) STRICT, WITHOUT ROWID;

CREATE INDEX mutation_dependent ON mutation_dependency (dependency);

-- Stands in for an id that the server has yet to give. Outlives the mutation that reserved it.
CREATE TABLE temporary_id (
    token TEXT PRIMARY KEY,
    partition INTEGER NOT NULL REFERENCES partition (id),
    sequence INTEGER REFERENCES mutation (sequence) ON DELETE SET NULL,
    real TEXT,
    resolved INTEGER,
    CHECK ((real IS NULL) = (resolved IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX temporary_id_reserver ON temporary_id (sequence) WHERE sequence IS NOT NULL;

-- Where a temporary id without a real one stands.
CREATE TABLE temporary_id_use (
    token TEXT NOT NULL REFERENCES temporary_id (token) ON DELETE CASCADE,
    sequence INTEGER NOT NULL REFERENCES mutation (sequence) ON DELETE CASCADE,
    PRIMARY KEY (token, sequence)
) STRICT, WITHOUT ROWID;

CREATE INDEX temporary_id_user ON temporary_id_use (sequence);

-- How a mutation ended, for whoever asks later.
CREATE TABLE outcome (
    id BLOB PRIMARY KEY,
    partition INTEGER NOT NULL REFERENCES partition (id),
    sequence INTEGER NOT NULL,
    -- 0 applied, 1 discarded
    kind INTEGER NOT NULL CHECK (kind IN (0, 1)),
    idempotency_key TEXT,
    settled INTEGER NOT NULL,
    result BLOB,
    class TEXT,
    code TEXT,
    message TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX outcome_idempotency ON outcome (partition, idempotency_key) WHERE idempotency_key IS NOT NULL;
