-- What few mutations have hangs on a row that only these have, so that settling any other looks into none of its tables:
-- a foreign key with an action is a small program of its own, which runs for each row that is deleted, and eight of them
-- took longer than all else that is done to a mutation in its life.
CREATE TABLE mutation_link (
    sequence INTEGER PRIMARY KEY REFERENCES mutation (sequence) ON DELETE CASCADE
) STRICT;

INSERT INTO mutation_link (sequence)
SELECT sequence FROM mutation_failure
UNION SELECT sequence FROM mutation_dependency
UNION SELECT dependency FROM mutation_dependency
UNION SELECT sequence FROM temporary_id WHERE sequence IS NOT NULL
UNION SELECT sequence FROM temporary_id_use
UNION SELECT sequence FROM mutation_transfer;

-- The tables are made anew, those first that nothing refers to.
ALTER TABLE mutation_failure RENAME TO old_failure;
ALTER TABLE mutation_dependency RENAME TO old_dependency;
ALTER TABLE mutation_transfer RENAME TO old_transfer;
ALTER TABLE temporary_id_use RENAME TO old_use;
ALTER TABLE temporary_id RENAME TO old_temporary_id;

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

INSERT INTO mutation_failure SELECT sequence, class, code, message, details, time FROM old_failure;
INSERT INTO mutation_dependency SELECT sequence, dependency FROM old_dependency;
INSERT INTO mutation_transfer SELECT sequence, transfer FROM old_transfer;
INSERT INTO temporary_id SELECT token, partition, sequence, real, resolved FROM old_temporary_id;
INSERT INTO temporary_id_use SELECT token, sequence FROM old_use;

DROP TABLE old_failure;
DROP TABLE old_dependency;
DROP TABLE old_transfer;
DROP TABLE old_use;
DROP TABLE old_temporary_id;

CREATE INDEX mutation_dependent ON mutation_dependency (dependency);
CREATE INDEX mutation_transfer_waiter ON mutation_transfer (transfer);
CREATE INDEX temporary_id_reserver ON temporary_id (sequence) WHERE sequence IS NOT NULL;
CREATE INDEX temporary_id_user ON temporary_id_use (sequence);

-- Whoever writes into one of them need not think of it.
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
