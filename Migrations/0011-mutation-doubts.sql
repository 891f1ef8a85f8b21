-- How the attempt under way, or the last, tells the server the idempotency key: '' not at all, otherwise by what header
-- or variable. Null where nothing was sent by it.
ALTER TABLE mutation ADD COLUMN telling TEXT;
-- How those attempts told it that may have taken effect and whose outcome is not known: '*' in a way that was not
-- noted. Null where there is none.
ALTER TABLE mutation ADD COLUMN doubt TEXT;

-- Until now a mutation was sent again after such an attempt only where the server told repeats.
UPDATE mutation SET doubt = '*' WHERE state = 0 AND sequence IN (
    SELECT sequence FROM mutation_failure WHERE class IN ('outcomeUnknown', 'serverFault'));
UPDATE mutation SET doubt = '' WHERE state = 1;

-- What the server said had failed of a mutation that took effect in part, as a JSON list.
ALTER TABLE outcome ADD COLUMN errors BLOB;
