-- Operations whose answers stay in the cache, each under a name: what several names pin stays until none does.

CREATE TABLE pin (
    partition INTEGER NOT NULL REFERENCES partition (id),
    name TEXT NOT NULL,
    document TEXT NOT NULL,
    operation_name TEXT,
    variables BLOB NOT NULL,
    created INTEGER NOT NULL,
    PRIMARY KEY (partition, name)
) STRICT, WITHOUT ROWID;
