-- twin: rota/stores/ledger/holds.py rota/stores/ledger/fans.py
-- Fans: the children of a fan-out are counted in the verbs that end them, and the last end lets the gather in.

-- The fan that the run with this id is a child of; NULL if the id is not that of a child.
CREATE OR REPLACE FUNCTION fan_of(run text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT substring(run FROM '^(.+)\.[0-9]+$')
$$;

-- The ids of the gathers that the end of the runs `ids` may let in.
CREATE OR REPLACE FUNCTION gathers_of(ids text[]) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY(SELECT fan_of(i) || '.all' FROM unnest(ids) AS i WHERE strpos(i, '.') > 0 AND fan_of(i) IS NOT NULL)
$$;

CREATE OR REPLACE FUNCTION is_over(f fans) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(f.failed > f.allowed, false) OR coalesce(f.ended >= f.total, false)
$$;

-- If the fan `after` is over, and was not `before`, its gather may start. Returns the arrivals for `to_hint`.
-- Lock order: too late for the row of the gather in queue (6), so NOWAIT. This happens once in the life of a fan.
CREATE OR REPLACE FUNCTION let_in(before boolean, after fans, now float8, OUT tasks text[], OUT dues float8[])
LANGUAGE plpgsql AS $$
BEGIN
    tasks := '{}'; dues := '{}';
    IF before OR NOT is_over(after) THEN RETURN; END IF;
    PERFORM FROM queue q WHERE q.id = after.id || '.all' FOR NO KEY UPDATE NOWAIT;
    SELECT m.tasks, m.dues INTO tasks, dues FROM meet_needs(ARRAY['#' || after.id || ' all'], now) AS m;
END $$;

-- Count those of the runs `ended` that have ended and are children of a fan. Returns the arrivals for `to_hint`.
-- The rows of fans die often: they are read by version, the latest first.
-- Lock order: fans, by id, after marks (7). A verb calls this once, after it has ended its runs.
CREATE OR REPLACE FUNCTION count_in_fan(ended text[], now float8, OUT tasks text[], OUT dues float8[]) LANGUAGE plpgsql AS $$
DECLARE
    counted record;
    known fans;
    over boolean;
    got record;
BEGIN
    tasks := '{}'; dues := '{}';
    IF strpos(array_to_string(ended, ' '), '.') = 0 THEN RETURN; END IF;
    FOR counted IN
        SELECT c.fan, count(*)::integer AS n, (count(*) FILTER (WHERE r.state <> 'succeeded'))::integer AS failed
        FROM (SELECT DISTINCT e.id, fan_of(e.id) AS fan FROM unnest(ended) AS e (id)) AS c
        CROSS JOIN LATERAL (SELECT r.state FROM finished r WHERE r.id = c.id OFFSET 0) AS r
        WHERE c.fan IS NOT NULL GROUP BY c.fan ORDER BY c.fan COLLATE "C"
    LOOP
        SELECT f.* INTO known FROM fans f WHERE f.id = counted.fan ORDER BY f.version DESC LIMIT 1 FOR UPDATE;
        CONTINUE WHEN NOT FOUND;
        over := is_over(known);
        UPDATE fans f SET version = f.version + 1, ended = f.ended + counted.n, failed = f.failed + counted.failed
        WHERE f.id = known.id AND f.version = known.version RETURNING * INTO known;
        SELECT * INTO got FROM let_in(over, known, now);
        tasks := tasks || got.tasks; dues := dues || got.dues;
    END LOOP;
END $$;

-- Is the run, which has ended, the child of a fan whose gather has not ended?
CREATE OR REPLACE FUNCTION is_kept(run text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN strpos(run, '.') > 0 AND EXISTS (SELECT FROM fans f WHERE f.id = fan_of(run));
END $$;

-- Make the fan `which`, or say how many children it has; the first total stays.
-- Lock order: its name (5), its row in fans (after 7).
CREATE OR REPLACE FUNCTION put_fan(
    me text, skew float8, seen float8, which text, new_total integer, new_allowed integer,
    OUT now float8, OUT hinted text[], OUT touched text[], OUT answers boolean[]
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    known fans;
    over boolean := false;
    got record;
BEGIN
    touched := '{}'; hinted := '{}'; answers := ARRAY[false];
    PERFORM lock_names(ARRAY['#' || which], true);
    now := now_of(skew, seen, true);
    SELECT f.* INTO known FROM fans f WHERE f.id = which ORDER BY f.version DESC LIMIT 1 FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO fans VALUES (which, 0, new_total, new_allowed, 0, 0, now) RETURNING * INTO known;
    ELSIF known.total IS NULL AND new_total IS NOT NULL THEN
        over := is_over(known);
        UPDATE fans f SET version = f.version + 1, total = new_total
        WHERE f.id = known.id AND f.version = known.version RETURNING * INTO known;
    ELSE
        RETURN;
    END IF;
    answers := ARRAY[true];
    SELECT * INTO got FROM let_in(over, known, now);
    hinted := to_hint(got.tasks, got.dues, now);
    PERFORM send_hints(me, hinted, touched);
END $$;
