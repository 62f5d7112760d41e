-- Flows, chains and plans: runs that belong together, and needs by name. A name is spelled as in domain.needs: '+task key'
-- is met by a success of that (task, key), '*task key' by any end.

CREATE TABLE grouped (
    run text COLLATE "C" PRIMARY KEY,              -- in any of the three tables; forgotten with it
    grp text COLLATE "C" NOT NULL
);
CREATE INDEX grouped_by ON grouped (grp, run);

-- Names and plans are locked by the hash of what they are about, in 64 buckets: a batch of thousands takes few locks.
--
-- Whoever waits for a name reads its mark and leaves a row in waits; whoever ends a run writes that mark and reads those
-- rows. Side by side, neither would see the other, and the run would wait for ever. So the one who waits takes the lock
-- alone, before it reads; those who end share it, before they write, and do not wait for each other.
CREATE FUNCTION lock_names(names text[], alone boolean) RETURNS void LANGUAGE plpgsql AS $$
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
CREATE FUNCTION lock_needs(news incoming[], planned text) RETURNS void LANGUAGE plpgsql AS $$
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

-- What the end of a run meets; `final` is its state then.
CREATE FUNCTION met_by(id text, awaited boolean, marked boolean, task text, key text, final text) RETURNS text[]
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN awaited THEN ARRAY[id] ELSE '{}' END
        || CASE WHEN marked THEN ARRAY['*' || task || ' ' || key] ELSE '{}' END
        || CASE WHEN marked AND final = 'succeeded' THEN ARRAY['+' || task || ' ' || key] ELSE '{}' END
$$;

-- For those that end: their leases, the names they are known by, and then all that wait for them, by id. They
-- are let go one after the other, and two batches that let go the same ones would else meet in a ring. Which of the ends
-- somebody waits for: from now on, nobody comes to wait for another one.
CREATE FUNCTION lock_ends(ids text[]) RETURNS text[] LANGUAGE plpgsql AS $$
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

-- Is this name still to be met?
CREATE FUNCTION is_to_come(need text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (
        SELECT FROM marks m
        WHERE m.task = substr(need, 2, strpos(need, ' ') - 2) AND m.key = substr(need, strpos(need, ' ') + 1)
          AND CASE left(need, 1) WHEN '*' THEN m.finished_at ELSE m.succeeded_at END IS NOT NULL)
$$;

-- What of this is still to come; a run among it is told that somebody waits for its end. A run moves between queue and
-- leases while we look: it is nowhere only if one statement finds it nowhere.
CREATE FUNCTION unmet(wanted text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    need text;
    remaining text[] := '{}';
BEGIN
    FOREACH need IN ARRAY wanted LOOP
        IF strpos(need, ' ') > 0 THEN
            IF is_to_come(need) THEN remaining := remaining || need; END IF;
            CONTINUE;
        END IF;
        LOOP
            UPDATE leases SET awaited = true WHERE id = need;
            IF NOT FOUND THEN UPDATE queue SET awaited = true WHERE id = need; END IF;
            IF FOUND THEN
                remaining := remaining || need;
                EXIT;
            END IF;
            EXIT WHEN NOT EXISTS (SELECT FROM leases WHERE id = need UNION ALL SELECT FROM queue WHERE id = need);
        END LOOP;
    END LOOP;
    RETURN remaining;
END $$;

-- The tasks of what these groups have waiting: their gates are locked by whoever may end that.
CREATE FUNCTION tasks_in(groups text[]) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT ARRAY(SELECT DISTINCT q.task::text FROM grouped g JOIN queue q ON q.id = g.run WHERE g.grp = ANY(groups))
$$;

-- End what a group has waiting, but for these runs and unique keys; each with a decision of its own.
CREATE FUNCTION cancel_group(
    which text, but text[], keep text[], why text, said text, now float8,
    OUT ended text[], OUT tasks text[], OUT dues float8[]
) LANGUAGE plpgsql AS $$
DECLARE
    waiting text[];
    gone record;
BEGIN
    PERFORM lock_gates(tasks_in(ARRAY[which]));  -- held already, but for what has just come in
    waiting := ARRAY(
        SELECT q.id::text FROM queue q WHERE q.id = ANY(ARRAY(SELECT g.run FROM grouped g WHERE g.grp = which))
          AND q.id NOT IN (SELECT unnest(but)) AND (q.unique_key IS NULL OR q.unique_key NOT IN (SELECT unnest(keep)))
        ORDER BY q.id FOR UPDATE);
    SELECT * INTO gone FROM end_waiting(waiting, why, said, now);
    ended := coalesce(gone.ended, '{}'); tasks := gone.tasks; dues := gone.dues;
    PERFORM decide(gone.of_task, gone.of_key, array_fill(why, ARRAY[cardinality(ended)]), NULL, ended, said, NULL, now);
END $$;
