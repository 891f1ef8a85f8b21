-- What a mutation's optimistic layer can have to do with, so that a long queue is opened without reading what it says.
--
-- null: not known; the layer is laid over whatever is read. Empty: the mutation shows nothing. Otherwise the cache keys
-- that it reads or writes, in a form that the record cache knows; whoever changes what the mutation shows sets it to
-- null, and whoever reads what it shows finds out by this whether it was changed since.
ALTER TABLE mutation ADD COLUMN touched BLOB;
