-- twin: rota/stores/sqlite/threads.py
-- Verbs are READ COMMITTED: each statement sees what was committed before it began.
-- Their plans are made once per connection, perhaps while the tables are empty, and have to hold when they are full. So
-- the verbs forbid whatever reads a whole table: every step is a look-up by index for each row of the batch.
--
-- Verbs wait for locks in this order and in no other, so that they wait for each other but never in a ring:
--   1 workers    the row of the worker that claims
--   2 schedules  by id
--   3 specs      the gates of tasks, by name
--   4 leases     by id
--   5 names      names and plans (lock_names), by bucket
--   6 queue      rows that are there, by id; then those that come in, by task and unique key. A parked run belongs to its
--                gate: whoever holds that may lock it at any time
--   7 marks      and rates, which belong to the gate of their task as well
--   8 decisions  by task, key and reason
--   9 stats      by minute and task
-- A lock that comes too late for this order is taken without waiting: SKIP LOCKED where another row does as well, else
-- NOWAIT, which ends the verb, and its client sends it again. tests/stores/test_postgres_order.py checks all of it.
-- What a lock protects is read by a later statement than the one that took it.

-- Lock what limits these tasks, in the order of their names; which of them are gated.
CREATE OR REPLACE FUNCTION lock_gates(tasks text[]) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM specs WHERE gated AND name = ANY(tasks)) THEN
        RETURN '{}';
    END IF;
    RETURN ARRAY(SELECT name FROM specs WHERE gated AND name = ANY(tasks) ORDER BY name FOR NO KEY UPDATE);
END $$;

-- The same where other locks are held already. Most of these gates are held, too; a gate that is not is locked NOWAIT.
CREATE OR REPLACE FUNCTION lock_late_gates(tasks text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM specs s WHERE s.gated AND s.name = ANY(tasks) ORDER BY s.name FOR NO KEY UPDATE NOWAIT;
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

-- Locks for runs that are put: the runs and names that they wait for, the group of the plan, and the waiting runs that they
-- may join. A lone run without needs locks the run that it joins in `admit`.
CREATE OR REPLACE FUNCTION lock_needs(news incoming[], planned text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    wanted text[] := ARRAY(SELECT DISTINCT need FROM unnest(news) AS n
                           CROSS JOIN json_array_elements_text(n.needs::json) AS need WHERE n.needs IS NOT NULL);
    names text[] := ARRAY(SELECT w FROM unnest(wanted) AS w WHERE strpos(w, ' ') > 0);
    met text[];
BEGIN
    IF planned IS NULL AND wanted = '{}' AND cardinality(news) < 2 THEN RETURN; END IF;
    met := wanted || ARRAY(SELECT l.id::text FROM unnest(news) AS n JOIN leases l ON l.task = n.task AND l.unique_key = n.unique_key
                           WHERE n.behind);
    IF met <> '{}' THEN PERFORM FROM leases l WHERE l.id = ANY(met) ORDER BY l.id FOR NO KEY UPDATE; END IF;
    IF planned IS NOT NULL THEN names := names || ('=' || planned); END IF;
    IF names <> '{}' THEN PERFORM lock_names(names, true); END IF;
    met := wanted || ARRAY(SELECT q.id::text FROM unnest(news) AS n JOIN queue q ON q.task = n.task AND q.unique_key = n.unique_key
                           WHERE n.unique_key IS NOT NULL)
                  || ARRAY(SELECT g.run::text FROM grouped g WHERE g.grp = planned);
    IF met <> '{}' THEN PERFORM FROM queue q WHERE q.id = ANY(met) ORDER BY q.id FOR NO KEY UPDATE; END IF;
END $$;

-- Locks for runs that end: their leases, their names, and then, by id, the runs that wait for them, equal runs that wait,
-- and the groups that they stop. The verb changes all of these later; two batches that locked them in the order of their
-- settlements would deadlock. Returns those of the ends that a run waits for; no run can start to wait for another of them
-- while these locks are held.
CREATE OR REPLACE FUNCTION lock_ends(ids text[], stopped text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    met text[];
    names text[];
    wanted text[];
    waiting text[];
BEGIN
    PERFORM FROM leases l WHERE l.id = ANY(ids) ORDER BY l.id FOR UPDATE;
    SELECT array_agg(m), array_agg(m) FILTER (WHERE strpos(m, ' ') > 0) INTO met, names
    FROM leases l CROSS JOIN unnest(
        met_by(l.id, l.awaited, l.writes_mark, l.task, coalesce(l.unique_key, l.key, ''), 'succeeded')) AS m
    WHERE l.id = ANY(ids);
    IF names IS NOT NULL THEN PERFORM lock_names(names, false); END IF;
    SELECT array_agg(w.ended::text), array_agg(w.run) INTO wanted, waiting FROM waits w WHERE w.ended = ANY(met);
    waiting := waiting || ARRAY(SELECT q.id::text FROM leases l JOIN queue q ON q.task = l.task AND q.unique_key = l.unique_key
                                WHERE l.id = ANY(ids) AND l.unique_key IS NOT NULL);
    IF stopped <> '{}' THEN
        waiting := waiting || ARRAY(SELECT g.run::text FROM grouped g WHERE g.grp = ANY(stopped));
    END IF;
    IF waiting <> '{}' THEN
        PERFORM FROM queue q WHERE q.id = ANY(waiting) ORDER BY q.id FOR NO KEY UPDATE;
    END IF;
    RETURN wanted;
END $$;
