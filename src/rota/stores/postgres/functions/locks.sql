-- twin: rota/stores/sqlite/threads.py
-- Locks. Verbs run in READ COMMITTED: each statement sees what was committed before the statement began.
--
-- Query plans: PostgreSQL makes the plan of a statement once per connection, perhaps while the tables are empty, and uses it
-- when they are full. So the verbs forbid sequential scans, bitmap scans, hash joins and merge joins: every statement looks up
-- each row of the batch by an index. If the statistics say that a table is empty (its rows are dead, and ANALYZE came), a walk
-- over any index seems as cheap as a look-up. So a statement leaves only the look-up: `q.hold + 0` matches no partial index,
-- and LATERAL (... OFFSET 0) lets a join only look up.
--
-- Lock order: a verb waits for locks only in this order, so that verbs can wait for each other but cannot deadlock. Comments
-- in the other files begin with "Lock order:" where they speak of it, and with "Race:" where two verbs may miss each other.
--   1 workers    the state of the worker that claims (worker_states), then its row
--   2 schedules  by id
--     ids        new ids that submitters gave to their runs, by id. Only the verb that deletes a run from `finished` updates the
--                row of its id, so nobody waits for such a row
--   3 specs      the gates of tasks, by name
--   4 leases     by id
--     running    the numbers of running runs, by task and key; the lock on the gate of a task also protects those of the task
--   5 names      names of needs and groups of plans (lock_names), by bucket; then unique keys that tasks share (lock_uniques)
--   6 queue      first rows that exist, by id; then new rows, by task and unique key. Exception: a verb that has locked the
--                gate of a task may lock the parked runs of that task at any time
--   7 marks      and rates; the lock on the gate of a task also protects the rates of the task
--     fans       the counts of fans, by id
--   8 decisions  by task, key and reason
--   9 rollups    by slot, task and origin
--     totals     by one sweep at a time
-- A verb that needs a lock too late for this order does not wait for it. It uses SKIP LOCKED if another row serves as well.
-- Else it uses NOWAIT: if the row is locked, the server rolls the verb back, and the client sends the verb again.
-- tests/stores/test_postgres_order.py checks this order.
-- A value that a lock protects is read by a later statement than the statement that took the lock: the statement that waits
-- for a lock still sees other tables as they were when it began.

-- The place of the live row of a schedule, among its dead versions; NULL: there is none. A place is good for the statement that
-- looks it up, or as long as the schedule is locked.
CREATE OR REPLACE FUNCTION schedule_place(of_id text) RETURNS tid LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT s.ctid FROM schedules s WHERE s.id = of_id ORDER BY s.change DESC LIMIT 1);
END $$;

-- Lock schedules. Lock order: schedules (2), by id.
CREATE OR REPLACE FUNCTION lock_schedules(ids text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    of_id text;
BEGIN
    FOR of_id IN SELECT DISTINCT i COLLATE "C" FROM unnest(ids) AS i ORDER BY 1 LOOP
        PERFORM FROM schedules s WHERE s.id = of_id ORDER BY s.change DESC LIMIT 1 FOR UPDATE;
    END LOOP;
END $$;

-- Lock the gates (rows in specs) of those of these tasks that have a limit or a rate, with the rows of their named limits, and
-- return the names of the locked rows. The name of a limit's row among the tasks is locked too. Lock order: specs (3), by name.
-- Race: a task may get a named limit between the look for its limits and the lock. Whoever counts looks again.
CREATE OR REPLACE FUNCTION lock_gates(tasks text[]) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM specs WHERE gated AND name = ANY(tasks)) THEN
        RETURN '{}';
    END IF;
    tasks := tasks || ARRAY(SELECT l FROM specs s CROSS JOIN unnest(s.limits) AS l WHERE s.gated AND s.name = ANY(tasks));
    RETURN ARRAY(SELECT name FROM specs WHERE gated AND name = ANY(tasks) ORDER BY name FOR NO KEY UPDATE);
END $$;

-- Lock the gates of these tasks in a verb that has locked rows of a later class already. Lock order: too late for specs (3),
-- so NOWAIT. The verb has locked most of these gates already.
CREATE OR REPLACE FUNCTION lock_late_gates(tasks text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM specs s WHERE s.gated AND s.name = ANY(tasks) ORDER BY s.name FOR NO KEY UPDATE NOWAIT;
END $$;

-- Lock the lease of a run that a put waits for. Lock order: lock_needs has locked it, unless a claim has taken the run since
-- then: too late for leases (4), so NOWAIT. The transaction of a caller waits instead, because an error would end it.
CREATE OR REPLACE FUNCTION lock_late_lease(run text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(current_setting('rota.open', true), '') = '' THEN
        PERFORM FROM leases l WHERE l.id = run FOR NO KEY UPDATE NOWAIT;
    END IF;
END $$;

-- Take the ids that the submitters of `news` gave to their runs, each unless a run has it already. `admit` finds a taken id
-- without a run, and makes the run.
-- Race: a put of the same id waits here until this put has committed, and then finds the id.
-- Lock order: ids (before specs), by id.
CREATE OR REPLACE FUNCTION take_ids(news incoming[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ids (id, fingerprint)
    SELECT DISTINCT ON (n.id COLLATE "C") n.id, n.fingerprint FROM unnest(news) WITH ORDINALITY AS n
    WHERE n.fingerprint IS NOT NULL
      AND NOT EXISTS (SELECT FROM queue q WHERE q.id = n.id OFFSET 0)
      AND NOT EXISTS (SELECT FROM leases l WHERE l.id = n.id OFFSET 0)
      AND NOT EXISTS (SELECT FROM finished f WHERE f.id = n.id OFFSET 0)
    ORDER BY n.id COLLATE "C", n.ordinality
    ON CONFLICT DO NOTHING;
END $$;

-- Give the ids of `news` back for which no run was made.
CREATE OR REPLACE FUNCTION return_ids(news incoming[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM ids WHERE id = ANY(ARRAY(
        SELECT n.id FROM unnest(news) AS n
        WHERE n.fingerprint IS NOT NULL
          AND NOT EXISTS (SELECT FROM queue q WHERE q.id = n.id OFFSET 0)
          AND NOT EXISTS (SELECT FROM leases l WHERE l.id = n.id OFFSET 0)
          AND NOT EXISTS (SELECT FROM finished f WHERE f.id = n.id OFFSET 0))) AND state IS NULL;
END $$;

-- Lock the gates that a put may open: those of the waiting runs that its runs join, and those of the waiting runs that its
-- plan may cancel. A run that joins no other opens no gate. Lock order: specs (3), so this comes before lock_needs.
CREATE OR REPLACE FUNCTION lock_joined(news incoming[], plan_group text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    tasks text[];
BEGIN
    IF EXISTS (SELECT FROM specs WHERE gated) THEN
        SELECT array_agg(DISTINCT q.task::text) INTO tasks
        FROM unnest(news) AS n CROSS JOIN LATERAL (
            SELECT q.task FROM queue q WHERE q.task = n.task AND q.unique_key = n.unique_key OFFSET 0) AS q
        WHERE n.unique_key IS NOT NULL;
        PERFORM lock_gates(tasks || CASE WHEN plan_group IS NOT NULL THEN tasks_in(ARRAY[plan_group]) END);
    END IF;
END $$;

-- Lock names of needs and groups of plans. A name is hashed, without its first character, into one of 64 buckets: so a batch
-- of thousands takes few locks. Lock order: names (5), by bucket.
--
-- Race: a put that makes a run wait for a name reads the mark of that name and adds a row to waits. A settle that ends a run
-- writes that mark and reads those rows. If both ran at the same time, neither would see what the other writes, and the run
-- would wait for ever. So a put takes the lock alone, before it reads. A settle shares the lock with other settles, before it
-- writes: settles do not wait for each other.
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
-- may join. A lone run without needs whose key one run holds at most locks that run in `admit`.
-- Lock order: leases (4) by id, names (5), queue (6) by id.
CREATE OR REPLACE FUNCTION lock_needs(news incoming[], plan_group text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    wanted text[] := ARRAY(SELECT DISTINCT need FROM unnest(news) AS n
                           CROSS JOIN json_array_elements_text(n.needs::json) AS need WHERE n.needs IS NOT NULL);
    names text[] := ARRAY(SELECT w FROM unnest(wanted) AS w WHERE strpos(w, ' ') > 0);
    met text[];
BEGIN
    IF plan_group IS NULL AND wanted = '{}' AND cardinality(news) < 2 AND NOT coalesce(news[1].behind, false) AND NOT EXISTS (
        SELECT FROM queue q WHERE q.task = news[1].task AND q.unique_key = news[1].unique_key AND q.ahead) THEN
        IF news[1].unique_row IS NOT NULL THEN PERFORM lock_uniques(news); END IF;
        RETURN;
    END IF;
    met := wanted || ARRAY(SELECT l.id::text FROM unnest(news) AS n CROSS JOIN LATERAL (
                               SELECT l.id FROM leases l WHERE l.task = n.task AND l.unique_key = n.unique_key OFFSET 0) AS l
                           WHERE n.behind);
    IF met <> '{}' THEN PERFORM FROM leases l WHERE l.id = ANY(met) ORDER BY l.id FOR NO KEY UPDATE; END IF;
    IF plan_group IS NOT NULL THEN names := names || ('=' || plan_group); END IF;
    IF names <> '{}' THEN PERFORM lock_names(names, true); END IF;
    PERFORM lock_uniques(news);
    met := wanted || ARRAY(SELECT q.id::text FROM unnest(news) AS n CROSS JOIN LATERAL (
                               SELECT q.id FROM queue q WHERE q.task = n.task AND q.unique_key = n.unique_key OFFSET 0) AS q
                           WHERE n.unique_key IS NOT NULL)
                  || ARRAY(SELECT g.run::text FROM grouped g WHERE g.grp = plan_group);
    IF met <> '{}' THEN PERFORM FROM queue q WHERE q.id = ANY(met) ORDER BY q.id FOR NO KEY UPDATE; END IF;
END $$;

-- Locks for runs that end: their leases, their names, and then, by id, the runs that wait for them, equal runs that wait,
-- and the waiting runs of the groups that they stop. The verb changes all of these later; two batches that locked them in the
-- order of their settlements would deadlock. Returns the needs, met by these ends, that a run waits for. No run can begin to
-- wait for another of these needs while the verb has these locks.
-- Lock order: leases (4) by id, names (5), queue (6) by id.
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
    waiting := waiting || ARRAY(SELECT q.id::text FROM leases l CROSS JOIN LATERAL (
                                    SELECT q.id FROM queue q WHERE q.task = l.task AND q.unique_key = l.unique_key OFFSET 0) AS q
                                WHERE l.id = ANY(ids) AND l.unique_key || '' IS NOT NULL);
    IF stopped <> '{}' THEN
        waiting := waiting || ARRAY(SELECT g.run::text FROM grouped g WHERE g.grp = ANY(stopped));
    END IF;
    IF waiting <> '{}' THEN
        PERFORM FROM queue q WHERE q.id = ANY(waiting) ORDER BY q.id FOR NO KEY UPDATE;
    END IF;
    RETURN wanted;
END $$;
