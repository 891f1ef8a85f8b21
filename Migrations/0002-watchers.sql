-- Watchers that outlive the process: what they watch, and the last change they were told of.

CREATE TABLE watcher (
    partition INTEGER NOT NULL REFERENCES partition (id),
    name TEXT NOT NULL,
    document TEXT NOT NULL,
    operation_name TEXT,
    variables BLOB NOT NULL,
    -- unsigned 64-bit numbers, by their bits; null until something was delivered
    epoch INTEGER,
    number INTEGER,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    CHECK ((epoch IS NULL) = (number IS NULL)),
    PRIMARY KEY (partition, name)
) STRICT, WITHOUT ROWID;
