-- Files that an executor outside of the program carries, so that a program which does not know the executor leaves them.

-- When the executor was handed it over; null: it was not, or has ended it.
ALTER TABLE transfer ADD COLUMN handed_over INTEGER;
