-- What transfers have left behind is found without looking at all that have failed: what is being cancelled, and what
-- has failed and has an upload, or a partial file, still.
CREATE INDEX transfer_remains ON transfer (partition, sequence) WHERE state = 4
    OR state = 3 AND (upload IS NOT NULL OR uploads_before IS NOT NULL OR kind = 1 AND inode IS NOT NULL);

-- Who follows a partition's transfers reads those that have changed, and no more. New ones are told by their sequence;
-- the others have the number of their last change, and the partition that of the last of all. Never set back.
ALTER TABLE partition ADD COLUMN transfer_changes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE transfer ADD COLUMN changes INTEGER NOT NULL DEFAULT 0;
CREATE INDEX transfer_changed ON transfer (partition, changes) WHERE changes > 0;
CREATE TRIGGER transfer_change AFTER UPDATE OF state, partition ON transfer BEGIN
    UPDATE partition SET transfer_changes = transfer_changes + 1 WHERE id = NEW.partition;
    UPDATE transfer SET changes = (SELECT transfer_changes FROM partition WHERE id = NEW.partition)
    WHERE sequence = NEW.sequence;
END;
