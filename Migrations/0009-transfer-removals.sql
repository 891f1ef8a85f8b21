-- Transfers that go with all else that a partition had.

-- 1 if it is to be removed as soon as nothing of it is left at the storage, or in the store's folder.
ALTER TABLE transfer ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0 CHECK (forgotten IN (0, 1));
-- How often rows were removed that somebody may still wait for, who looks at those that have changed and finds nothing.
ALTER TABLE partition ADD COLUMN transfer_removals INTEGER NOT NULL DEFAULT 0;
