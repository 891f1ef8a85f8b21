-- An upload that ended without an answer to what it had sent: later ones of the same key wait, so that what stays is
-- theirs.

-- Of an upload: until when the object may still appear at the storage, and when that was worked out, by a clock that may
-- have been set back since. Null: no exchange is in doubt.
ALTER TABLE transfer ADD COLUMN doubt INTEGER;
ALTER TABLE transfer ADD COLUMN doubt_set INTEGER;

CREATE INDEX transfer_doubt ON transfer (place, doubt) WHERE doubt IS NOT NULL;
