-- What few mutations have hangs on a row that only these have, so that settling any other looks into none of its
-- tables: a foreign key with an action is a small program of its own, which runs for each row that is deleted, and
-- eight of them took longer than all else that is done to a mutation in its life.
CREATE TABLE mutation_link (
    sequence INTEGER PRIMARY KEY REFERENCES mutation (sequence) ON DELETE CASCADE
) STRICT;

-- Rows of mutations that are not there are left behind here and below: a damaged file had them.
INSERT INTO mutation_link (sequence)
SELECT sequence FROM (
    SELECT sequence FROM mutation_failure
    UNION SELECT sequence FROM mutation_dependency
    UNION SELECT dependency FROM mutation_dependency
    UNION SELECT sequence FROM temporary_id
    UNION SELECT sequence FROM temporary_id_use
    UNION SELECT sequence FROM mutation_transfer
) WHERE sequence IN (SELECT sequence FROM mutation);

-- The tables are made anew; what they hold lies aside meanwhile.
CREATE TABLE moved_failure AS SELECT * FROM mutation_failure;
CREATE TABLE moved_dependency AS SELECT * FROM mutation_dependency;
CREATE TABLE moved_transfer AS SELECT * FROM mutation_transfer;
CREATE TABLE moved_id AS SELECT * FROM temporary_id;
CREATE TABLE moved_use AS SELECT * FROM temporary_id_use;
DROP TABLE mutation_failure;
DROP TABLE mutation_dependency;
DROP TABLE mutation_transfer;
DROP TABLE temporary_id_use;
DROP TABLE temporary_id;

CREATE TABLE mutation_failure (
    sequence INTEGER PRIMARY KEY REFERENCES mutation_link (sequence) ON DELETE CASCADE,
    class TEXT NOT NULL,
    code TEXT,
    message TEXT NOT NULL,
    details BLOB,
    time INTEGER NOT NULL
) STRICT;

CREATE TABLE mutation_dependency (
    sequence INTEGER NOT NULL REFERENCES mutation_link (sequence) ON DELETE CASCADE,
    dependency INTEGER NOT NULL REFERENCES mutation_link (sequence) ON DELETE CASCADE CHECK (dependency < sequence),
    PRIMARY KEY (sequence, dependency)
) STRICT, WITHOUT ROWID;

CREATE TABLE mutation_transfer (
    sequence INTEGER NOT NULL REFERENCES mutation_link (sequence) ON DELETE CASCADE,
    transfer INTEGER NOT NULL REFERENCES transfer (sequence),
    PRIMARY KEY (sequence, transfer)
) STRICT, WITHOUT ROWID;

CREATE TABLE temporary_id (
    token TEXT PRIMARY KEY,
    partition INTEGER NOT NULL REFERENCES partition (id),
    sequence INTEGER REFERENCES mutation_link (sequence) ON DELETE SET NULL,
    real TEXT,
    resolved INTEGER,
    CHECK ((real IS NULL) = (resolved IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE temporary_id_use (
    token TEXT NOT NULL REFERENCES temporary_id (token) ON DELETE CASCADE,
    sequence INTEGER NOT NULL REFERENCES mutation_link (sequence) ON DELETE CASCADE,
    PRIMARY KEY (token, sequence)
) STRICT, WITHOUT ROWID;

CREATE INDEX mutation_dependent ON mutation_dependency (dependency);
CREATE INDEX mutation_transfer_waiter ON mutation_transfer (transfer);
CREATE INDEX temporary_id_reserver ON temporary_id (sequence) WHERE sequence IS NOT NULL;
CREATE INDEX temporary_id_user ON temporary_id_use (sequence);

INSERT INTO mutation_failure (sequence, class, code, message, details, time)
SELECT sequence, class, code, message, details, time FROM moved_failure
WHERE sequence IN (SELECT sequence FROM mutation_link);
INSERT INTO mutation_dependency (sequence, dependency)
SELECT sequence, dependency FROM moved_dependency
WHERE sequence IN (SELECT sequence FROM mutation_link) AND dependency IN (SELECT sequence FROM mutation_link);
INSERT INTO mutation_transfer (sequence, transfer)
SELECT sequence, transfer FROM moved_transfer
WHERE sequence IN (SELECT sequence FROM mutation_link) AND transfer IN (SELECT sequence FROM transfer);
INSERT INTO temporary_id (token, partition, sequence, real, resolved)
SELECT token, partition, iif(sequence IN (SELECT sequence FROM mutation_link), sequence, NULL), real, resolved
FROM moved_id;
INSERT INTO temporary_id_use (token, sequence)
SELECT token, sequence FROM moved_use
WHERE sequence IN (SELECT sequence FROM mutation_link) AND token IN (SELECT token FROM temporary_id);
DROP TABLE moved_failure;
DROP TABLE moved_dependency;
DROP TABLE moved_transfer;
DROP TABLE moved_id;
DROP TABLE moved_use;

-- Whoever adds a row to one of them need not think of it.
CREATE TRIGGER mutation_failure_link BEFORE INSERT ON mutation_failure BEGIN
    INSERT INTO mutation_link (sequence) SELECT NEW.sequence
    WHERE NOT EXISTS (SELECT 1 FROM mutation_link WHERE sequence = NEW.sequence);
END;
CREATE TRIGGER mutation_dependency_link BEFORE INSERT ON mutation_dependency BEGIN
    INSERT INTO mutation_link (sequence) SELECT NEW.sequence
    WHERE NOT EXISTS (SELECT 1 FROM mutation_link WHERE sequence = NEW.sequence);
    INSERT INTO mutation_link (sequence) SELECT NEW.dependency
    WHERE NOT EXISTS (SELECT 1 FROM mutation_link WHERE sequence = NEW.dependency);
END;
CREATE TRIGGER mutation_transfer_link BEFORE INSERT ON mutation_transfer BEGIN
    INSERT INTO mutation_link (sequence) SELECT NEW.sequence
    WHERE NOT EXISTS (SELECT 1 FROM mutation_link WHERE sequence = NEW.sequence);
END;
CREATE TRIGGER temporary_id_link BEFORE INSERT ON temporary_id WHEN NEW.sequence IS NOT NULL BEGIN
    INSERT INTO mutation_link (sequence) SELECT NEW.sequence
    WHERE NOT EXISTS (SELECT 1 FROM mutation_link WHERE sequence = NEW.sequence);
END;
CREATE TRIGGER temporary_id_use_link BEFORE INSERT ON temporary_id_use BEGIN
    INSERT INTO mutation_link (sequence) SELECT NEW.sequence
    WHERE NOT EXISTS (SELECT 1 FROM mutation_link WHERE sequence = NEW.sequence);
END;
