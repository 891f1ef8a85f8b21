-- Whether an earlier upload of the same key is not over yet is looked up by a number instead of by two texts, which
-- took a third of the time of queueing.

-- Of an upload: a number made of its bucket and key. Others may have the same. Null: queued before there was one.
ALTER TABLE transfer ADD COLUMN place INTEGER;

DROP INDEX transfer_place;
CREATE INDEX transfer_place ON transfer (place) WHERE kind = 0 AND state IN (0, 1);
CREATE INDEX transfer_unplaced ON transfer (partition, bucket, key, sequence)
    WHERE kind = 0 AND state IN (0, 1) AND place IS NULL;
