-- Of a unique key, one run waits; but one that was tried and waits for its retry may have an equal one behind it, which
-- waits for its end. The first of the two is `ahead` then.
ALTER TABLE queue ADD COLUMN ahead boolean NOT NULL DEFAULT false;
DROP INDEX queue_unique;
CREATE UNIQUE INDEX queue_unique ON queue (task, unique_key, ahead) WHERE unique_key IS NOT NULL;
