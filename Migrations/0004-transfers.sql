-- Files on their way to and from object storage. Times are milliseconds since 1970; ids are the 16 bytes of a UUID;
-- sizes and offsets are bytes.

CREATE TABLE transfer (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    partition INTEGER NOT NULL REFERENCES partition (id),
    -- 0 upload, 1 download
    kind INTEGER NOT NULL CHECK (kind IN (0, 1)),
    -- 0 pending, 1 running, 2 paused, 3 failed, 4 cancelling, 5 done, 6 cancelled
    state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 6),
    -- those with more of it are begun first
    priority INTEGER NOT NULL,
    bucket TEXT NOT NULL CHECK (bucket <> ''),
    key TEXT NOT NULL CHECK (key <> ''),
    region TEXT,
    -- the file that is read, or that is to be made
    path TEXT NOT NULL,
    -- of a download: 1 if a file that is there may be replaced
    replaces INTEGER NOT NULL CHECK (replaces IN (0, 1)),
    content_type TEXT,
    -- JSON
    metadata BLOB,
    -- how many attempts were begun; each ends that before it
    attempts INTEGER NOT NULL CHECK (attempts >= 0),
    owner TEXT CHECK ((owner IS NOT NULL) = (state = 1)),
    created INTEGER NOT NULL,
    expires INTEGER,
    not_before INTEGER,
    -- when not_before was worked out by a clock that may have been set back since
    not_before_set INTEGER,
    -- of the source, or of the object once it is known
    size INTEGER CHECK (size >= 0),
    -- which file it is: of an upload the source, of a download the partial file; modified in nanoseconds
    device INTEGER,
    inode INTEGER,
    modified INTEGER,
    -- null: it goes in one piece
    part_size INTEGER CHECK (part_size > 0),
    -- the storage's name for an upload in parts
    upload TEXT,
    -- JSON: the uploads of this key that the storage had before it was asked to begin one whose name did not arrive
    uploads_before BLOB,
    -- of the object: which bytes a download is of, or what an upload has made
    etag TEXT,
    version TEXT,
    crc32c INTEGER,
    ended INTEGER,
    failure_code TEXT,
    failure_message TEXT,
    failure_time INTEGER,
    CHECK ((failure_code IS NULL) = (failure_message IS NULL))
) STRICT;

CREATE INDEX transfer_turn ON transfer (partition, priority DESC, sequence) WHERE state = 0;
CREATE INDEX transfer_place ON transfer (partition, bucket, key, sequence) WHERE kind = 0 AND state IN (0, 1);
CREATE INDEX transfer_work ON transfer (partition, state) WHERE state IN (1, 4);
CREATE INDEX transfer_expiry ON transfer (partition, expires) WHERE state = 0 AND expires IS NOT NULL;
CREATE INDEX transfer_end ON transfer (partition, sequence) WHERE state >= 5;

-- What has arrived: of an upload at the storage, of a download in the partial file.
CREATE TABLE transfer_part (
    sequence INTEGER NOT NULL REFERENCES transfer (sequence) ON DELETE CASCADE,
    -- from 1
    number INTEGER NOT NULL CHECK (number >= 1),
    size INTEGER NOT NULL CHECK (size >= 0),
    etag TEXT,
    crc32c INTEGER,
    PRIMARY KEY (sequence, number)
) STRICT, WITHOUT ROWID;

-- What a mutation still waits for: a transfer that is done is no longer here.
CREATE TABLE mutation_transfer (
    sequence INTEGER NOT NULL REFERENCES mutation (sequence) ON DELETE CASCADE,
    transfer INTEGER NOT NULL REFERENCES transfer (sequence),
    PRIMARY KEY (sequence, transfer)
) STRICT, WITHOUT ROWID;

CREATE INDEX mutation_transfer_waiter ON mutation_transfer (transfer);
