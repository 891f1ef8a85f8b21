-- The SHA-256 that all bytes must have, where whoever queued the transfer said it.
ALTER TABLE transfer ADD COLUMN sha256 BLOB CHECK (length(sha256) = 32);
