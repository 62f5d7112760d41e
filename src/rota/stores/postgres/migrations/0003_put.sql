-- put and fire. Every run's guards are judged in the step that admits it; the first no wins.

CREATE TYPE incoming AS (
    id text, task text, key text, unique_key text, marked boolean, priority smallint, delay float8, at float8,
    expires_after float8, expires_at float8, body bytea, uniqueness text, meeting text, max_wait float8, rests text,
    max_pending integer, needs text, behind boolean, grp text
);

CREATE FUNCTION due_of(new incoming, now float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(new.at, after(now, coalesce(new.delay, 0)))
$$;

CREATE FUNCTION expiry_of(new incoming, now float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN new.expires_after IS NOT NULL
                THEN after(greatest(now, coalesce(new.at, after(now, coalesce(new.delay, 0)))), new.expires_after)
                ELSE new.expires_at END
$$;

-- A no by what is remembered of the key, or by what waits already; NULL if the run may come in.
CREATE FUNCTION refusal(new incoming, now float8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    mark marks;
    rule json;
    waiting bigint;
BEGIN
    IF new.uniqueness = 'done' OR new.rests IS NOT NULL THEN
        SELECT * INTO mark FROM marks m
        WHERE m.task = new.task AND m.key = coalesce(new.unique_key, new.key, '');
        IF new.uniqueness = 'done' AND mark.succeeded_at IS NOT NULL THEN RETURN 'already_done'; END IF;
        IF new.rests IS NOT NULL AND mark.finished_at IS NOT NULL THEN
            FOR rule IN SELECT * FROM json_array_elements(new.rests::json) LOOP
                IF mark.failures >= (rule ->> 0)::integer AND now < mark.finished_at + (rule ->> 1)::float8 THEN
                    RETURN coalesce(rule ->> 2, 'resting');
                END IF;
            END LOOP;
        END IF;
    END IF;
    IF new.max_pending IS NOT NULL THEN
        SELECT count(*) INTO waiting FROM (
            SELECT FROM queue q WHERE q.hold = 0 AND q.task = new.task LIMIT new.max_pending) AS ready;
        IF waiting < new.max_pending THEN
            SELECT waiting + count(*) INTO waiting FROM (
                SELECT FROM queue q WHERE q.hold = 1 AND q.task = new.task LIMIT new.max_pending) AS parked;
        END IF;
        IF waiting >= new.max_pending THEN RETURN 'queue_full'; END IF;
    END IF;
    RETURN NULL;
END $$;

-- The newcomer meets an equal that waits: the newest arguments win, the due time moves as it asks, and one of a group
-- waits for what that says now. Under the row lock of the holder. When something becomes due by that.
CREATE FUNCTION join_holder(holder queue, new incoming, now float8) RETURNS float8[] LANGUAGE plpgsql AS $$
DECLARE
    due float8 := holder.due_at;
    wanted float8 := due_of(new, now);
    still text[] := holder.needs;
    held smallint;
    dues float8[] := '{}';
BEGIN
    IF new.meeting = 'push' THEN
        due := greatest(due, CASE WHEN new.max_wait IS NULL THEN wanted
                                  ELSE least(wanted, holder.created_at + new.max_wait) END);
    ELSIF new.meeting = 'set' THEN
        due := wanted;
    END IF;
    IF new.grp IS NOT NULL AND (holder.needs IS NOT NULL OR new.needs IS NOT NULL) THEN
        still := nullif(unmet(ARRAY(SELECT json_array_elements_text(new.needs::json))), '{}');
        DELETE FROM waits w WHERE w.ended = ANY(holder.needs) AND w.run = holder.id;
        INSERT INTO waits SELECT need, holder.id FROM unnest(still) AS need ON CONFLICT DO NOTHING;
    END IF;
    held := CASE WHEN holder.hold = 3 THEN 3 WHEN still IS NOT NULL THEN 2
                 WHEN holder.hold = 1 AND due = holder.due_at THEN 1 ELSE 0 END;  -- who has moved is judged anew
    UPDATE queue SET body = new.body, due_at = due, expires_at = coalesce(expiry_of(new, now), holder.expires_at),
        hold = held, needs = still
    WHERE id = holder.id;
    -- Also where it was due already: a claim beside this put has passed it over, because it is locked here.
    IF held < 2 AND (due < holder.due_at OR held <> holder.hold OR (held = 0 AND due <= now)) THEN
        dues := dues || due;
    END IF;
    IF (due > holder.due_at OR held = 2) AND holder.hold = 0 AND holder.due_at <= now THEN
        dues := dues || freed(holder.task, holder.key, false, now);
    END IF;
    RETURN dues;
END $$;

-- The equal runs that run now, in the order of their arrival.
CREATE FUNCTION equals_of(new incoming) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT ARRAY(SELECT l.id::text FROM leases l WHERE l.task = new.task AND l.unique_key = new.unique_key ORDER BY l.seq)
$$;

-- One run through all its guards. `dues` is when something of its task becomes due, `late` what it found expired.
CREATE FUNCTION admit(
    new incoming, now float8, arrival bigint, OUT run text, OUT reason text, OUT dues float8[], OUT late text[], OUT late_keys text[],
    OUT more text[], OUT more_dues float8[]
) LANGUAGE plpgsql AS $$
DECLARE
    holder queue;
    still text[];
    since text[];
    due float8 := due_of(new, now);
BEGIN
    run := new.id; reason := 'accepted'; dues := '{}';
    IF EXISTS (SELECT FROM queue WHERE id = new.id UNION ALL SELECT FROM leases WHERE id = new.id
               UNION ALL SELECT FROM finished WHERE id = new.id) THEN
        RETURN;  -- the same id again answers the same
    END IF;
    IF EXISTS (SELECT FROM specs WHERE name = new.task AND NOT enabled) THEN
        reason := 'disabled';
        RETURN;
    END IF;
    LOOP
        IF new.unique_key IS NOT NULL THEN
            SELECT * INTO holder FROM queue q WHERE q.task = new.task AND q.unique_key = new.unique_key
            FOR NO KEY UPDATE;
            IF FOUND AND holder.hold <> 3 AND holder.expires_at <= now THEN
                -- Too late to start: whoever joined it would be lost with it.
                SELECT late || e.ended, late_keys || e.of_key, more || e.tasks, more_dues || e.dues
                INTO late, late_keys, more, more_dues
                FROM end_waiting(ARRAY[holder.id::text], 'expired', NULL, now) e;
            ELSIF FOUND THEN
                run := holder.id;
                IF new.meeting = 'refuse' THEN
                    reason := 'already_queued';
                ELSE
                    reason := 'joined';
                    dues := join_holder(holder, new, now);
                END IF;
                RETURN;
            END IF;
            IF new.uniqueness <> 'queued' THEN
                SELECT l.id INTO run FROM leases l WHERE l.task = new.task AND l.unique_key = new.unique_key
                ORDER BY l.seq LIMIT 1;
                IF FOUND THEN
                    reason := 'already_running';
                    RETURN;
                END IF;
                run := new.id;
            END IF;
        END IF;
        reason := refusal(new, now);
        IF reason IS NOT NULL THEN RETURN; END IF;
        reason := 'accepted';
        IF new.needs IS NOT NULL OR new.behind THEN
            still := unmet(ARRAY(SELECT json_array_elements_text(new.needs::json))
                || CASE WHEN new.behind THEN equals_of(new) END);
        END IF;
        INSERT INTO queue (seq, id, task, key, unique_key, marked, priority, created_at, due_at, expires_at, body, needs,
            rest, hold)
        VALUES (arrival, new.id, new.task, new.key, new.unique_key, coalesce(new.marked, false), coalesce(new.priority, 0),
            now, due, expiry_of(new, now), new.body, nullif(still, '{}'),
            CASE WHEN new.behind AND still <> '{}' THEN new.rests END, CASE WHEN still <> '{}' THEN 2 ELSE 0 END)
        ON CONFLICT DO NOTHING;
        EXIT WHEN FOUND;
        -- Someone came between: with the same id, which answers the same, or with the same key, who is met now.
        IF EXISTS (SELECT FROM queue WHERE id = new.id) THEN RETURN; END IF;
    END LOOP;
    -- The insert may have waited for a claim of the same id or key: what it left is seen only by a later statement.
    IF EXISTS (SELECT FROM leases WHERE id = new.id UNION ALL SELECT FROM finished WHERE id = new.id) THEN
        DELETE FROM queue WHERE id = new.id;
        RETURN;
    END IF;
    IF new.unique_key IS NOT NULL AND new.uniqueness <> 'queued' THEN
        SELECT l.id INTO holder.id FROM leases l WHERE l.task = new.task AND l.unique_key = new.unique_key LIMIT 1;
        IF FOUND THEN
            DELETE FROM queue WHERE id = new.id;
            run := holder.id; reason := 'already_running';
            RETURN;
        END IF;
        IF new.uniqueness = 'done' AND refusal(new, now) = 'already_done' THEN
            DELETE FROM queue WHERE id = new.id;
            reason := 'already_done';
            RETURN;
        END IF;
    END IF;
    IF new.behind THEN
        since := ARRAY(SELECT e FROM unnest(equals_of(new)) e WHERE e <> ALL(still));
        IF since <> '{}' THEN
            still := still || unmet(since);
            UPDATE queue SET needs = nullif(still, '{}'), rest = CASE WHEN still <> '{}' THEN new.rests END,
                hold = CASE WHEN still <> '{}' THEN 2 ELSE 0 END
            WHERE id = new.id;
        END IF;
    END IF;
    IF still IS NOT NULL AND still <> '{}' THEN
        INSERT INTO waits SELECT need, new.id FROM unnest(still) AS need ON CONFLICT DO NOTHING;
    ELSE
        dues := ARRAY[due];
    END IF;
    IF new.grp IS NOT NULL THEN
        INSERT INTO grouped VALUES (new.id, new.grp) ON CONFLICT DO NOTHING;
    END IF;
END $$;

-- The gates that a joining run may open are locked first, where a holder stands already: a newcomer needs none of them.
-- So are those of what a group has waiting that is planned anew.
CREATE FUNCTION lock_joined(news incoming[], planned text) RETURNS void LANGUAGE plpgsql AS $$
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

-- Of a big batch, as the ticks of many schedules and the steps of a flow are, those that meet nobody come in by one
-- statement: guarded by nothing but `unique`, alone with their key in the batch, nobody there who holds it, and waiting for
-- names at most. All others are judged one by one.
-- OFFSET 0 keeps each look a look-up: as a join, and with statistics from when the queue was empty, it reads the whole
-- index for every run (3,000 ticks in 4.9 s, not 0.6).
CREATE FUNCTION admit_easy(news incoming[], now float8) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    came text[];
    back text[];
BEGIN
    WITH n AS MATERIALIZED (
        SELECT n.*, count(*) OVER (PARTITION BY n.task, n.unique_key) AS equals, count(*) OVER (PARTITION BY n.id) AS twins
        FROM unnest(news) WITH ORDINALITY AS n
    ), numbered AS MATERIALIZED (  -- they arrive in the order of the batch, and lock in that of their keys
        SELECT n.*, nextval('arrivals') AS seq, (
            SELECT CASE WHEN bool_and(strpos(w.need, ' ') > 0)  -- else it waits for a run, which has to be told
                        THEN coalesce(array_agg(w.need) FILTER (WHERE NOT w.met), '{}') END
            FROM (SELECT j.need, EXISTS (
                      SELECT FROM marks m WHERE m.task = substr(j.need, 2, greatest(0, strpos(j.need, ' ') - 2))
                          AND m.key = substr(j.need, strpos(j.need, ' ') + 1)
                          AND CASE left(j.need, 1) WHEN '*' THEN m.finished_at ELSE m.succeeded_at END IS NOT NULL) AS met
                  FROM json_array_elements_text(n.needs::json) AS j (need)) AS w) AS still
        FROM n ORDER BY n.ordinality
    ), ins AS (
        INSERT INTO queue (seq, id, task, key, unique_key, marked, priority, created_at, due_at, expires_at, body, needs,
            hold)
        SELECT n.seq, n.id, n.task, n.key, n.unique_key, coalesce(n.marked, false), coalesce(n.priority, 0), now,
               coalesce(n.at, after(now, coalesce(n.delay, 0))),
               CASE WHEN n.expires_after IS NOT NULL
                    THEN after(greatest(now, coalesce(n.at, after(now, coalesce(n.delay, 0)))), n.expires_after)
                    ELSE n.expires_at END, n.body, nullif(n.still, '{}'), CASE WHEN n.still <> '{}' THEN 2 ELSE 0 END
        FROM numbered n WHERE n.twins = 1 AND (n.unique_key IS NULL OR n.equals = 1)
          AND n.rests IS NULL AND n.max_pending IS NULL AND (n.needs IS NULL OR n.still IS NOT NULL)
          AND NOT (n.uniqueness IS NOT DISTINCT FROM 'done' AND EXISTS (
              SELECT FROM marks m WHERE m.task = n.task AND m.key = n.unique_key AND m.succeeded_at IS NOT NULL))
          AND NOT EXISTS (SELECT FROM specs s WHERE s.name = n.task AND NOT s.enabled)
          AND NOT EXISTS (SELECT FROM leases l WHERE l.id = n.id OFFSET 0)
          AND NOT EXISTS (SELECT FROM finished f WHERE f.id = n.id OFFSET 0)
          AND NOT EXISTS (SELECT FROM queue q WHERE q.task = n.task AND q.unique_key = n.unique_key OFFSET 0)
          AND NOT EXISTS (SELECT FROM leases l WHERE l.task = n.task AND l.unique_key = n.unique_key OFFSET 0)
        ORDER BY n.task COLLATE "C", n.unique_key COLLATE "C"
        ON CONFLICT DO NOTHING RETURNING id
    )
    SELECT array_agg(ins.id::text) INTO came FROM ins;
    -- As in `admit`: what a claim left for which the insert has waited is seen only now. Those start over.
    back := ARRAY(SELECT l.id::text FROM leases l WHERE l.id = ANY(came)
        UNION ALL SELECT f.id FROM finished f WHERE f.id = ANY(came)
        UNION ALL SELECT q.id FROM queue q WHERE q.id = ANY(came) AND q.unique_key IS NOT NULL
            AND EXISTS (SELECT FROM leases l WHERE l.task = q.task AND l.unique_key = q.unique_key)
        UNION ALL SELECT n.id FROM unnest(news) AS n JOIN marks m ON m.task = n.task AND m.key = n.unique_key
            WHERE n.uniqueness = 'done' AND m.succeeded_at IS NOT NULL AND n.id = ANY(came));
    IF back <> '{}' THEN
        DELETE FROM queue WHERE id = ANY(back);
        came := ARRAY(SELECT c FROM unnest(came) c WHERE c <> ALL(back));
    END IF;
    INSERT INTO waits SELECT need, q.id FROM queue q CROSS JOIN unnest(q.needs) AS need
    WHERE q.id = ANY(came) AND q.needs IS NOT NULL ON CONFLICT DO NOTHING;
    INSERT INTO grouped SELECT n.id, n.grp FROM unnest(news) AS n WHERE n.grp IS NOT NULL AND n.id = ANY(came)
    ON CONFLICT DO NOTHING;
    RETURN came;
END $$;

-- Where in the one list the items of the other stand.
CREATE FUNCTION places_of(items text[], found text[]) RETURNS integer[] LANGUAGE sql SET enable_hashjoin = on AS $$
    SELECT coalesce(array_agg(i.place::integer), '{}')
    FROM unnest(items) WITH ORDINALITY AS i (item, place) JOIN unnest(found) AS f (item) ON f.item = i.item
$$;

-- All of them in order; decisions are written, arrivals and expired runs handed back.
CREATE FUNCTION admit_all(
    news incoming[], now float8,
    OUT runs text[], OUT reasons text[], OUT tasks text[], OUT dues float8[], OUT touched text[]
) LANGUAGE plpgsql AS $$
DECLARE
    new incoming;
    got record;
    due float8;
    place integer;
    came text[];
    easy integer[] := '{}';
    chained boolean;
    arrived bigint[];
    arrival bigint;
    d_tasks text[] := '{}'; d_keys text[] := '{}'; d_reasons text[] := '{}'; d_runs text[] := '{}';
BEGIN
    runs := ARRAY(SELECT n.id FROM unnest(news) AS n);
    reasons := array_fill('accepted'::text, ARRAY[cardinality(runs)]);
    tasks := '{}'; dues := '{}'; touched := '{}';
    IF cardinality(news) >= 20 THEN
        came := admit_easy(news, now);
        easy := places_of(runs, came);
        SELECT coalesce(array_agg(q.task::text), '{}'), coalesce(array_agg(q.due_at), '{}') INTO tasks, dues
        FROM queue q WHERE q.id = ANY(came) AND q.hold = 0;
    END IF;
    -- They arrive in the order of the batch, and lock in that of their keys: two batches of the same keys would else meet in
    -- a ring. Not where some wait for others of the batch, which have to be there first.
    chained := EXISTS (SELECT FROM unnest(news) AS n WHERE n.needs IS NOT NULL);
    arrived := ARRAY(SELECT nextval('arrivals') FROM generate_series(1, cardinality(news) - cardinality(easy)));
    FOR place, arrival IN
        SELECT w.place, arrived[w.turn] FROM (
            SELECT n.task, n.unique_key, n.ordinality::integer AS place, row_number() OVER (ORDER BY n.ordinality) AS turn
            FROM unnest(news) WITH ORDINALITY AS n WHERE n.ordinality <> ALL(easy)) AS w
        ORDER BY CASE WHEN NOT chained THEN w.task END COLLATE "C" NULLS FIRST,
                 CASE WHEN NOT chained THEN w.unique_key END COLLATE "C" NULLS FIRST, w.place
    LOOP
        new := news[place];
        SELECT * INTO got FROM admit(new, now, arrival);
        runs[place] := got.run;
        reasons[place] := got.reason;
        FOREACH due IN ARRAY got.dues LOOP
            tasks := tasks || new.task;
            dues := dues || due;
        END LOOP;
        IF got.late IS NOT NULL THEN
            touched := touched || got.late;
            tasks := tasks || got.more;
            dues := dues || got.more_dues;
            FOR i IN 1 .. cardinality(got.late) LOOP
                d_tasks := d_tasks || new.task; d_keys := d_keys || got.late_keys[i];
                d_reasons := d_reasons || 'expired'::text; d_runs := d_runs || got.late[i];
            END LOOP;
        END IF;
        IF got.reason <> 'accepted' THEN
            d_tasks := d_tasks || new.task; d_keys := d_keys || new.key;
            d_reasons := d_reasons || got.reason; d_runs := d_runs || got.run;
        END IF;
    END LOOP;
    PERFORM decide(d_tasks, d_keys, d_reasons, NULL, d_runs, NULL, NULL, now);
END $$;

-- `plain`: no run of the batch has guards or needs, so that one statement admits them all. `runs` is NULL then: all
-- are accepted. Columns where every run has the default come as empty arrays. `planned` is the group of which these are
-- all that shall wait: what else of it does is cancelled, but for those keys, and answered behind the others.
CREATE FUNCTION put(
    me text, skew float8, seen float8, plain boolean, known text[],
    ids text[], of_task text[], of_key text[], unique_keys text[], marks_ boolean[], priorities smallint[],
    delays float8[], ats float8[], expires_after_ float8[], expires_at_ float8[], bodies bytea[],
    uniques text[], joins text[], max_waits float8[], rests_ text[], pendings integer[], needs_ text[],
    behinds boolean[], groups text[], planned text, keep text[], said text,
    OUT now float8, OUT hinted text[], OUT touched text[], OUT runs text[], OUT reasons text[]
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    news incoming[];
    tasks text[];
    dues float8[];
    twice text[];
    gone record;
BEGIN
    hinted := '{}';
    now := now_of(skew, seen, true);
    IF plain AND NOT EXISTS (SELECT FROM specs s WHERE s.name = ANY(known) AND NOT s.enabled) THEN
        IF EXISTS (SELECT FROM workers w WHERE w.idle = 1) THEN
            SELECT array_agg(n.task), array_agg(coalesce(n.at, now + coalesce(n.delay, 0)))
            INTO tasks, dues FROM unnest(of_task, delays, ats) AS n (task, delay, at);
            hinted := hint(tasks, dues, now);
        END IF;
        INSERT INTO queue (id, task, key, marked, called, priority, created_at, due_at, expires_at, body)
        SELECT n.id, n.task, n.key, coalesce(n.marked, false), cardinality(hinted) > 0 AND cardinality(known) = 1,
               coalesce(n.priority, 0), now,
               coalesce(n.at, after(now, coalesce(n.delay, 0))),
               CASE WHEN n.expires_after IS NOT NULL
                    THEN after(greatest(now, coalesce(n.at, after(now, coalesce(n.delay, 0)))), n.expires_after)
                    ELSE n.expires_at END,
               n.body
        FROM unnest(ids, of_task, of_key, marks_, priorities, delays, ats, expires_after_, expires_at_, bodies)
             AS n (id, task, key, marked, priority, delay, at, expires_after, expires_at, body)
        ON CONFLICT DO NOTHING;
        -- Only now: the insert may have waited for a claim of the same id, and what that left is seen by a later
        -- statement only. A check in the insert itself made second runs of resent puts.
        twice := ARRAY(SELECT l.id::text FROM leases l WHERE l.id = ANY(ids)
                       UNION ALL SELECT f.id FROM finished f WHERE f.id = ANY(ids));
        IF twice <> '{}' THEN DELETE FROM queue q WHERE q.id = ANY(twice); END IF;
    ELSE
        news := ARRAY(SELECT n::incoming FROM unnest(ids, of_task, of_key, unique_keys, marks_, priorities, delays, ats,
            expires_after_, expires_at_, bodies, uniques, joins, max_waits, rests_, pendings, needs_, behinds, groups)
            AS n (id, task, key, unique_key, marked, priority, delay, at, expires_after, expires_at, body, uniqueness,
                  meeting, max_wait, rests, max_pending, needs, behind, grp));
        PERFORM lock_joined(news, planned);
        IF planned IS NOT NULL OR needs_ <> '{}' THEN PERFORM lock_needs(news, planned); END IF;
        now := now_of(skew, seen, true);
        SELECT a.runs, a.reasons, a.tasks, a.dues, a.touched INTO runs, reasons, tasks, dues, touched
        FROM admit_all(news, now) a;
        IF planned IS NOT NULL THEN
            SELECT * INTO gone FROM cancel_group(planned, runs, keep, 'cancelled', said, now);
            runs := runs || gone.ended;
            reasons := reasons || array_fill('cancelled'::text, ARRAY[cardinality(gone.ended)]);
            tasks := tasks || gone.tasks; dues := dues || gone.dues; touched := touched || gone.ended;
        END IF;
        hinted := hint(tasks, dues, now);
        IF cardinality(hinted) = 0 THEN UPDATE queue q SET called = false WHERE q.id = ANY(ids); END IF;
    END IF;
    PERFORM tell(me, hinted, touched);
END $$;

-- put from any driver, in the caller's own transaction: runs as JSON in, [run, reason] pairs as JSON out. That
-- transaction may stay open for long, so no worker's row is locked: each process that listens is told at the commit, and
-- wakes one of its workers.
CREATE FUNCTION submit(payload text, skew float8 DEFAULT 0, seen float8 DEFAULT 0) RETURNS text
LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    now float8 := now_of(skew, seen, false);
    news incoming[] := ARRAY(SELECT n FROM json_populate_recordset(NULL::incoming, payload::json) AS n);
    got record;
BEGIN
    PERFORM lock_joined(news, NULL);
    PERFORM lock_needs(news, NULL);
    SELECT * INTO got FROM admit_all(news, now);
    UPDATE queue q SET called = false WHERE q.id = ANY(got.runs) AND q.called;
    IF EXISTS (SELECT FROM listeners l WHERE l.until > clock_timestamp()) THEN
        PERFORM pg_notify('rota.' || current_schema(),
            json_build_object('tasks', ARRAY(SELECT DISTINCT n.task FROM unnest(news) AS n), 'runs', got.touched)::text);
    END IF;
    RETURN (SELECT json_agg(json_build_array(a.run, a.reason) ORDER BY a.place)
            FROM unnest(got.runs, got.reasons) WITH ORDINALITY AS a (run, reason, place));
END $$;

-- Advance each schedule and admit its runs, if it still stands where the tick was planned. Runs come flat; `r_tick` is
-- the place of the tick that each belongs to.
CREATE FUNCTION fire(
    me text, skew float8, seen float8,
    ids text[], versions integer[], nexts float8[], thens float8[], fires float8[], missed_at float8[],
    missed_count bigint[], missed_reasons text[], missed_words text[],
    r_tick integer[], r_nominal float8[], r_ids text[], of_task text[], of_key text[], unique_keys text[],
    marks_ boolean[], priorities smallint[], delays float8[], ats float8[], expires_after_ float8[],
    expires_at_ float8[], bodies bytea[], uniques text[], joins text[], max_waits float8[], rests_ text[],
    pendings integer[], needs_ text[], behinds boolean[], groups text[],
    OUT now float8, OUT hinted text[], OUT touched text[], OUT runs text[], OUT reasons text[], OUT applied integer[]
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    news incoming[];
    tasks text[];
    dues float8[];
    tick record;
    plan record;
    first_next float8;
BEGIN
    PERFORM FROM schedules s WHERE s.id = ANY(ids) ORDER BY s.id FOR UPDATE;
    now := now_of(skew, seen, true);
    applied := '{}';
    FOR tick IN SELECT * FROM unnest(ids, versions, nexts, thens, fires, missed_count, missed_reasons, missed_words)
                WITH ORDINALITY AS t (id, version, next_at, upcoming, fires_at, missed, reason, words, place) LOOP
        UPDATE schedules s SET next_at = tick.upcoming, fires_at = tick.fires_at, look_at = tick.fires_at
        WHERE s.id = tick.id AND NOT s.paused AND s.version = tick.version AND s.next_at IS NOT DISTINCT FROM tick.next_at
        RETURNING s.task, s.key INTO plan;
        IF FOUND THEN
            applied := applied || tick.place::integer;
            first_next := least(first_next, tick.fires_at);
            IF tick.missed IS NOT NULL THEN
                PERFORM decide(ARRAY[plan.task::text], ARRAY[plan.key::text], ARRAY[tick.reason], ARRAY[tick.missed],
                               NULL, tick.words, NULL, now);
            END IF;
        END IF;
    END LOOP;
    news := ARRAY(SELECT ROW(n.id, n.task, n.key, n.unique_key, n.marked, n.priority, n.delay, n.at, n.expires_after,
            n.expires_at, n.body, n.uniqueness, n.meeting, n.max_wait, n.rests, n.max_pending, n.needs, n.behind,
            n.grp)::incoming
        FROM unnest(r_ids, of_task, of_key, unique_keys, marks_, priorities, delays, ats, expires_after_, expires_at_,
            bodies, uniques, joins, max_waits, rests_, pendings, needs_, behinds, groups, r_tick) WITH ORDINALITY
            AS n (id, task, key, unique_key, marked, priority, delay, at, expires_after, expires_at, body, uniqueness,
                  meeting, max_wait, rests, max_pending, needs, behind, grp, tick, place)
        WHERE n.tick = ANY(applied) ORDER BY n.place);
    PERFORM lock_joined(news, NULL);
    IF needs_ <> '{}' THEN PERFORM lock_needs(news, NULL); END IF;
    SELECT a.runs, a.reasons, a.tasks, a.dues, a.touched INTO runs, reasons, tasks, dues, touched
    FROM admit_all(news, now) a;
    -- What became of each nominal time; a missed range comes before the runs of its tick.
    WITH firing AS (
        SELECT ids[m.tick] AS id, m.tick, 0 AS place, m.at AS nominal, m.reason
        FROM unnest(missed_at, missed_reasons) WITH ORDINALITY AS m (at, reason, tick) WHERE m.at IS NOT NULL AND m.tick = ANY(applied)
        UNION ALL
        SELECT ids[r.tick], r.tick, row_number() OVER (ORDER BY r.place), r.nominal,
               reasons[(row_number() OVER (ORDER BY r.place))::integer]
        FROM unnest(r_tick, r_nominal) WITH ORDINALITY AS r (tick, nominal, place) WHERE r.tick = ANY(applied)
    ), told AS (
        SELECT f.id, array_agg('[' || f.nominal || ',"' || f.reason || '"]' ORDER BY f.tick, f.place) AS firings,
               (array_agg(f.nominal ORDER BY f.tick DESC, f.place DESC))[1] AS last_at
        FROM firing f GROUP BY f.id
    )
    UPDATE schedules s SET last_at = told.last_at,
        recent = (s.recent || told.firings)[greatest(1, cardinality(s.recent) + cardinality(told.firings) - 29):]
    FROM told WHERE s.id = told.id;
    IF first_next IS NOT NULL THEN  -- one worker looks after all that are due next
        tasks := tasks || NULL::text;
        dues := dues || first_next;
    END IF;
    hinted := hint(tasks, dues, now);
    PERFORM tell(me, hinted, touched);
END $$;
