-- twin: rota/stores/ledger/admit.py rota/stores/ledger/dry.py
-- put: admit new runs. submit: put in the transaction of a caller.

-- Remove from the queue those of the new runs `ids` that were put before: a put that was sent again.
-- Race: the insert may have waited for a claim that moved a run of the same id into leases, and only a later statement than the
-- insert sees that lease. So the check comes after the insert: a check in the insert made a second run when a put was sent again.
-- Ids are in the order of time. If no id between the first and the last is taken, none of the batch is taken.
CREATE OR REPLACE FUNCTION remove_taken(ids text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    first text COLLATE "C" := ids[1];
    last text COLLATE "C" := ids[1];
BEGIN
    IF cardinality(ids) > 1 THEN
        SELECT min(i.id COLLATE "C"), max(i.id COLLATE "C") INTO first, last FROM unnest(ids) AS i (id);
    END IF;
    IF EXISTS (SELECT FROM leases l WHERE l.id BETWEEN first AND last)
        OR EXISTS (SELECT FROM finished f WHERE f.id BETWEEN first AND last) THEN
        DELETE FROM queue q WHERE q.id = ANY(ARRAY(SELECT l.id FROM leases l WHERE l.id = ANY(ids)
            UNION ALL SELECT f.id FROM finished f WHERE f.id = ANY(ids)));
    END IF;
END $$;

-- Put runs that have nothing but what {bare_fields} say: no guards, no needs, no group, no times. Most puts are of this kind. The
-- insert does not look for conflicts, which saves a quarter of its cost: if an id is taken, or a task is disabled, `put` does it.
-- `known`: the tasks of the batch; without `p_task`, all runs are of the only one.
-- Lock order: it waits only for new rows of queue (6).
CREATE OR REPLACE FUNCTION put_bare(
    me text, skew float8, seen float8, known text[], {bare_parameters},
    OUT now float8, OUT hinted text[], OUT touched text[], OUT runs text[], OUT reasons text[]
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    around record;
    arrivals record;
    bare boolean;
    handed boolean := false;
BEGIN
    hinted := '{}'; touched := '{}';
    now := now_of(skew, seen, true);
    -- A reader of events that begins after this look waits for the writes that are noted by now.
    SELECT EXISTS (SELECT FROM specs s WHERE s.name = ANY(known) AND NOT s.enabled) AS disabled,
           EXISTS (SELECT FROM workers_seen w WHERE w.idle = 1) AS idle,
           (SELECT r.last_value FROM record_until r) > now * {PER_SECOND} AS recorded
    INTO around;
    bare := NOT around.disabled;
    IF bare THEN
        IF p_queue IS NOT NULL THEN PERFORM know_queues(coalesce(p_task, array_fill(known[1], ARRAY[cardinality(p_id)])), p_queue); END IF;
        BEGIN
            INSERT INTO queue ({bare_stored}, task, queue, writes_mark, priority, created_at, due_at, lane_at)
            SELECT {n.bare_stored}, coalesce(n.task, known[1]), coalesce(n.queue, ''), coalesce(n.writes_mark, false),
                   coalesce(n.priority, 0), now, now, now
            FROM unnest({bare_arrays}) AS n ({bare_fields});
        EXCEPTION WHEN unique_violation THEN
            bare := false;
        END;
    END IF;
    IF NOT bare THEN
        p_task := coalesce(p_task, array_fill(known[1], ARRAY[cardinality(p_id)]));
        SELECT * INTO now, hinted, touched, runs, reasons
        FROM put(me, skew, seen, true, known, {bare_as_put}, NULL, NULL, NULL);
        RETURN;
    END IF;
    PERFORM remove_taken(p_id);
    IF p_task IS NULL THEN
        INSERT INTO counted VALUES ('decided', known[1], 'accepted', cardinality(p_id));
    ELSE
        INSERT INTO counted SELECT 'decided', n.task, 'accepted', count(*) FROM unnest(p_task) AS n (task) GROUP BY n.task;
    END IF;
    IF around.recorded THEN
        PERFORM record_put(me, p_id, array_fill('accepted'::text, ARRAY[cardinality(p_id)]), NULL, NULL, NULL, NULL, NULL, now);
    END IF;
    IF around.idle AND cardinality(p_id) = 1 THEN
        SELECT l.hinted, l.handed INTO hinted, handed
        FROM hand_or_hint(p_id[1], lane_name(known[1], coalesce(p_queue[1], '')), now) AS l;
        IF handed AND around.recorded THEN PERFORM record_events(me, 'runs', NULL, p_id, NULL, NULL, NULL, NULL, now); END IF;
    ELSIF around.idle THEN
        SELECT array_agg(lane_name(coalesce(n.task, known[1]), coalesce(n.queue, ''))) AS tasks, array_agg(now) AS dues
        INTO arrivals FROM unnest(p_id, p_task, p_queue) AS n (id, task, queue);
        hinted := to_hint(arrivals.tasks, arrivals.dues, now);
    END IF;
    IF hinted <> '{}' THEN PERFORM send_hints(me, hinted, touched); END IF;
END $$;

-- Put runs. A column in which every run has the default comes as NULL.
-- `plain`: no run of the batch has guards, needs or a group, so that one statement admits all runs. Then `runs` is NULL, which
-- means that all are accepted. `known`: the tasks of the batch.
-- `plan_group`: the group of a plan; NULL without a plan. The runs of the put are all that shall wait in this group: the other
-- queued runs of the group are cancelled with the note `plan_note`, except those with a unique key in `keep`. The cancelled
-- runs are returned after the others.
-- Lock order: a plain put waits only for new rows of queue (6). Else ids, specs (3), leases (4), names (5), queue (6).
CREATE OR REPLACE FUNCTION put(
    me text, skew float8, seen float8, plain boolean, known text[],
    {put_parameters}, plan_group text, keep text[], plan_note text,
    OUT now float8, OUT hinted text[], OUT touched text[], OUT runs text[], OUT reasons text[]
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    news incoming[];
    tasks text[];
    dues float8[];
    got record;
    gone record;
    more integer := 0;
    own boolean;
    recorded boolean;
    handed boolean;
BEGIN
    hinted := '{}';
    now := now_of(skew, seen, true);
    IF plain AND NOT EXISTS (SELECT FROM specs s WHERE s.name = ANY(known) AND NOT s.enabled) THEN
        IF EXISTS (SELECT FROM workers_seen w WHERE w.idle = 1) THEN
            SELECT array_agg(lane_name(n.task, coalesce(n.queue, ''))), array_agg(coalesce(n.at, now + coalesce(n.delay, 0)))
            INTO tasks, dues FROM unnest(p_task, p_queue, p_delay, p_at) AS n (task, queue, delay, at);
        END IF;
        IF p_queue <> '{}' THEN PERFORM know_queues(p_task, p_queue); END IF;
        INSERT INTO queue ({plain_stored}, queue, share, writes_mark, priority, created_at, due_at, lane_at, expires_at)
        SELECT {n.plain_stored}, coalesce(n.queue, ''), n.share, coalesce(n.writes_mark, false), coalesce(n.priority, 0), now,
               coalesce(n.at, after(now, coalesce(n.delay, 0))),
               CASE WHEN n.at < now THEN lane_place(n.task, coalesce(n.queue, ''), coalesce(n.priority, 0)::smallint, n.at, now)
                    ELSE coalesce(n.at, after(now, coalesce(n.delay, 0))) END,
               CASE WHEN n.expires_after IS NOT NULL
                    THEN after(greatest(now, coalesce(n.at, after(now, coalesce(n.delay, 0)))), n.expires_after)
                    WHEN n.expires_at IS NOT NULL THEN noted_expiry(n.expires_at, now) END
        FROM unnest({plain_arrays}) AS n ({plain_fields})
        ON CONFLICT DO NOTHING;
        PERFORM remove_taken(p_id);
        INSERT INTO counted SELECT 'decided', n.task, 'accepted', count(*) FROM unnest(p_task) AS n (task) GROUP BY n.task;
    ELSE
        news := ARRAY(SELECT n::incoming FROM unnest({put_arrays}) AS n ({put_fields}));
        own := EXISTS (SELECT FROM unnest(news) AS n WHERE n.fingerprint IS NOT NULL);
        IF own THEN PERFORM take_ids(news); END IF;
        PERFORM lock_joined(news, plan_group);
        PERFORM lock_needs(news, plan_group);
        now := now_of(skew, seen, true);
        SELECT * INTO got FROM admit_all(news, now);
        IF own THEN PERFORM return_ids(news); END IF;
        runs := got.runs; reasons := got.reasons; tasks := got.tasks; dues := got.dues; touched := got.touched;
        IF plan_group IS NOT NULL THEN
            SELECT * INTO gone FROM cancel_group(plan_group, runs, keep, 'cancelled', plan_note, now);
            runs := runs || gone.ended;
            more := cardinality(gone.ended);
            reasons := reasons || array_fill('cancelled'::text, ARRAY[more]);
            tasks := tasks || gone.tasks; dues := dues || gone.dues; touched := touched || gone.ended;
            got.d_tasks := got.d_tasks || gone.of_task; got.d_keys := got.d_keys || gone.of_key;
            got.d_reasons := got.d_reasons || array_fill('cancelled'::text, ARRAY[more]);
            got.d_runs := got.d_runs || gone.ended;
        END IF;
        SELECT * INTO gone FROM count_in_fan(touched, now);
        tasks := tasks || gone.tasks; dues := dues || gone.dues;
        PERFORM count_decisions(got.d_tasks, got.d_keys, got.d_reasons, NULL, got.d_runs,
            array_fill(NULL::text, ARRAY[cardinality(got.d_runs) - more]) || array_fill(plan_note, ARRAY[more]), NULL, now);
    END IF;
    recorded := (SELECT r.last_value FROM record_until r) > now * {PER_SECOND};
    IF recorded THEN
        IF runs IS NULL THEN
            PERFORM record_put(me, p_id, array_fill('accepted'::text, ARRAY[cardinality(p_id)]), NULL, NULL, NULL, NULL, NULL, now);
        ELSE
            PERFORM record_put(me, runs, reasons, touched, got.d_tasks, got.d_keys, got.d_reasons, got.d_runs, now);
        END IF;
    END IF;
    IF cardinality(p_id) = 1 AND cardinality(tasks) = 1 AND dues[1] <= now AND coalesce(reasons[1], 'accepted') = 'accepted'
        AND right(tasks[1], 2) <> E'\x1f*' THEN
        SELECT l.hinted, l.handed INTO hinted, handed FROM hand_or_hint(p_id[1], tasks[1], now) AS l;
        IF handed AND recorded THEN PERFORM record_events(me, 'runs', NULL, p_id, NULL, NULL, NULL, NULL, now); END IF;
    ELSE
        hinted := to_hint(tasks, dues, now);
    END IF;
    PERFORM send_hints(me, hinted, touched);
END $$;

-- Judge a put without making it: put in a transaction of its own, which is undone. The variables of a function outlive that.
-- Lock order: that of put; the locks go with the inner transaction.
CREATE OR REPLACE FUNCTION try_put(
    me text, skew float8, seen float8, plain boolean, known text[],
    {put_parameters}, plan_group text, keep text[], plan_note text,
    OUT now float8, OUT hinted text[], OUT touched text[], OUT runs text[], OUT reasons text[]
) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    BEGIN
        SELECT p.now, p.runs, p.reasons INTO now, runs, reasons
        FROM put(me, skew, seen, plain, known, {put_arrays}, plan_group, keep, plan_note) AS p;
        RAISE EXCEPTION SQLSTATE 'RT001';
    EXCEPTION WHEN SQLSTATE 'RT001' THEN
        hinted := '{}'; touched := '{}';
    END;
END $$;

-- Put runs in the transaction of a caller, from any driver: takes runs as JSON, returns pairs [run, reason] as JSON.
-- Lock order: that transaction may stay open for long, so submit locks no row of workers, and chooses no worker to hint. At the
-- commit every process that listens gets a hint for the tasks, and wakes one of its workers.
CREATE OR REPLACE FUNCTION submit(payload text, skew float8 DEFAULT 0, seen float8 DEFAULT 0) RETURNS text
LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    now float8 := now_of(skew, seen, false);
    news incoming[] := ARRAY(SELECT n FROM json_populate_recordset(NULL::incoming, payload::json) AS n);
    own boolean := EXISTS (SELECT FROM unnest(news) AS n WHERE n.fingerprint IS NOT NULL);
    got record;
BEGIN
    PERFORM set_config('rota.open', skew::text, true);
    PERFORM pg_advisory_xact_lock_shared(lock_class('open'), 0);  -- see `writers`
    IF own THEN PERFORM take_ids(news); END IF;
    PERFORM lock_joined(news, NULL);
    PERFORM lock_needs(news, NULL);
    SELECT * INTO got FROM admit_all(news, now);
    IF own THEN PERFORM return_ids(news); END IF;
    IF got.touched <> '{}' THEN
        PERFORM set_config('rota.ended', (coalesce(nullif(current_setting('rota.ended', true), ''), '{}')::text[]
                                          || got.touched)::text, true);
    END IF;
    PERFORM count_in_fan(got.touched, now);
    PERFORM count_decisions(got.d_tasks, got.d_keys, got.d_reasons, NULL, got.d_runs, NULL, NULL, now);
    IF EXISTS (SELECT FROM listeners l WHERE l.until > clock_timestamp()) THEN
        PERFORM pg_notify('rota.' || current_schema(),
            json_build_object('tasks', ARRAY(SELECT DISTINCT lane_name(n.task, coalesce(n.queue, '')) FROM unnest(news) AS n), 'runs', got.touched)::text);
    END IF;
    RETURN (SELECT json_agg(json_build_array(a.run, a.reason) ORDER BY a.place)
            FROM unnest(got.runs, got.reasons) WITH ORDINALITY AS a (run, reason, place));
END $$;
