-- A partition may have several storages, each with an account of its own.

-- The name that the program gives to the transfer's storage; null: the one that has no name.
ALTER TABLE transfer ADD COLUMN storage TEXT CHECK (storage <> '');

-- Those that wait for a storage with a name are looked for at each turn, and there are few.
CREATE INDEX transfer_storage ON transfer (partition, storage, failure_code) WHERE state = 0 AND storage IS NOT NULL;
