-- Verbs are READ COMMITTED: each statement sees what was committed before it began.
-- Their plans are made once per connection, perhaps while the tables are empty, and have to hold when they are full. So
-- the verbs forbid whatever reads a whole table: every step is a look-up by index for each row of the batch.
--
-- Locks are taken in this order, so that verbs wait for each other but never in a ring: the worker, gated tasks by
-- name, leases by id, names and plans (lock_names) by bucket, the queue (waiting children by id, guarded inserts, parked
-- runs), workers to hint (never waited for). What a lock protects is read by a later statement than the one that took it.

-- Lock what limits these tasks, in the order of their names; which of them are gated.
CREATE OR REPLACE FUNCTION lock_gates(tasks text[]) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM specs WHERE gated AND name = ANY(tasks)) THEN
        RETURN '{}';
    END IF;
    RETURN ARRAY(SELECT name FROM specs WHERE gated AND name = ANY(tasks) ORDER BY name FOR NO KEY UPDATE);
END $$;

-- The gates that a joining run may open are locked first, where a holder stands already: a newcomer needs none of them.
-- So are those of what a group has waiting that is planned anew.
CREATE OR REPLACE FUNCTION lock_joined(news incoming[], planned text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    tasks text[];
BEGIN
    IF EXISTS (SELECT FROM specs WHERE gated) THEN
        SELECT array_agg(DISTINCT q.task::text) INTO tasks
        FROM unnest(news) AS n JOIN queue q ON q.task = n.task AND q.unique_key = n.unique_key
        WHERE n.unique_key IS NOT NULL;
        PERFORM lock_gates(tasks || CASE WHEN planned IS NOT NULL THEN tasks_in(ARRAY[planned]) END);
    END IF;
END $$;

-- Names and plans are locked by the hash of what they are about, in 64 buckets: a batch of thousands takes few locks.
--
-- Whoever waits for a name reads its mark and leaves a row in waits; whoever ends a run writes that mark and reads those
-- rows. Side by side, neither would see the other, and the run would wait for ever. So the one who waits takes the lock
-- alone, before it reads; those who end share it, before they write, and do not wait for each other.
CREATE OR REPLACE FUNCTION lock_names(names text[], alone boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    space integer := hashtext('rota.' || current_schema());
    buckets integer[] := ARRAY(SELECT DISTINCT hashtext(substr(n, 2)) & 63 FROM unnest(names) n ORDER BY 1);
    bucket integer;
BEGIN
    FOREACH bucket IN ARRAY buckets LOOP
        IF alone THEN
            PERFORM pg_advisory_xact_lock(space, bucket);
        ELSE
            PERFORM pg_advisory_xact_lock_shared(space, bucket);
        END IF;
    END LOOP;
END $$;

-- For those that come in: the names they wait for, and the group that is planned anew. Leases are locked before names.
CREATE OR REPLACE FUNCTION lock_needs(news incoming[], planned text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    wanted text[] := ARRAY(SELECT DISTINCT need FROM unnest(news) AS n
                           CROSS JOIN json_array_elements_text(n.needs::json) AS need WHERE n.needs IS NOT NULL);
    names text[] := ARRAY(SELECT w FROM unnest(wanted) AS w WHERE strpos(w, ' ') > 0);
BEGIN
    IF planned IS NOT NULL THEN names := names || ('=' || planned); END IF;
    IF names <> '{}' THEN
        PERFORM FROM leases l WHERE l.id = ANY(wanted) ORDER BY l.id FOR NO KEY UPDATE;
        PERFORM lock_names(names, true);
    END IF;
END $$;

-- For those that end: their leases, the names they are known by, and then all that wait for them, by id. They
-- are let go one after the other, and two batches that let go the same ones would else meet in a ring. Which of the ends
-- somebody waits for: from now on, nobody comes to wait for another one.
CREATE OR REPLACE FUNCTION lock_ends(ids text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    met text[];
    names text[];
    wanted text[];
    waiting text[];
BEGIN
    PERFORM FROM leases l WHERE l.id = ANY(ids) ORDER BY l.id FOR UPDATE;
    SELECT array_agg(m), array_agg(m) FILTER (WHERE strpos(m, ' ') > 0) INTO met, names
    FROM leases l CROSS JOIN unnest(
        met_by(l.id, l.awaited, l.marked, l.task, coalesce(l.unique_key, l.key, ''), 'succeeded')) AS m
    WHERE l.id = ANY(ids);
    IF names IS NOT NULL THEN PERFORM lock_names(names, false); END IF;
    SELECT array_agg(w.ended::text), array_agg(w.run) INTO wanted, waiting FROM waits w WHERE w.ended = ANY(met);
    IF waiting IS NOT NULL THEN
        PERFORM FROM queue q WHERE q.id = ANY(waiting) ORDER BY q.id FOR NO KEY UPDATE;
    END IF;
    RETURN wanted;
END $$;
