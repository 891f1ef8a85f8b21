-- What a store no longer knows of mutations that may have reached their server, so that a backup does not bring one back
-- as unsent.
CREATE TABLE forgotten_outcome (
    -- the name of a partition, also of one that was forgotten; '' for all of them
    partition TEXT PRIMARY KEY,
    -- of mutations up to this number the store may have known how they ended
    sequence INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Until now nothing was noted of what was erased, forgotten, pruned or lost.
INSERT INTO forgotten_outcome (partition, sequence)
SELECT '', seq FROM sqlite_sequence WHERE name = 'mutation' AND seq > 0;
