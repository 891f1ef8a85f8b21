-- Where the store is, so that a folder that was moved, and a copy of the store, are known.

-- The folder that the paths of transfers were last made relative to; null: none. From now on a path that does not begin
-- with "/" is relative to the folder that the program names.
ALTER TABLE store ADD COLUMN home TEXT;

-- The token that the device keeps for the store, outside of it, and the token that takes its place next: the device has
-- one of them, unless the store was copied there or brought back from a backup. Null: none was ever kept.
ALTER TABLE store ADD COLUMN device_token TEXT;
ALTER TABLE store ADD COLUMN next_device_token TEXT;
