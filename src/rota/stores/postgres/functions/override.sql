-- twin: rota/stores/ledger/override.py
-- override: set what an operator says of a task. The row of the overrides is a row of specs: its name is "override " and the task.

-- Write into the columns of a task what is in force: what an operator says, else what the code says. The caller has locked the row.
CREATE OR REPLACE FUNCTION put_in_force(which text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    code json := (SELECT s.spec::json FROM specs s WHERE s.name = which);
    code_limit json := code -> 'limit';
    code_rate json := code -> 'rate';
    given specs;
BEGIN
    SELECT * INTO given FROM specs s WHERE s.name = 'override ' || which;
    IF NOT FOUND THEN RETURN; END IF;
    IF given.total IS NULL AND given.per_key IS NULL THEN
        given.total := (code_limit ->> 'total')::integer; given.per_key := (code_limit ->> 'per_key')::integer;
    END IF;
    IF given.rate_interval IS NULL AND code_rate IS NOT NULL THEN
        given.rate_interval := coalesce((code_rate ->> 'per')::float8, 1) / (code_rate ->> 'n')::float8;
        given.rate_burst := coalesce((code_rate ->> 'burst')::integer, 1);
        given.rate_per_key := coalesce((code_rate ->> 'per_key')::boolean, false);
    END IF;
    UPDATE specs s SET enabled = given.enabled AND coalesce((code ->> 'enabled')::boolean, true), total = given.total,
        per_key = given.per_key, rate_interval = given.rate_interval, rate_burst = given.rate_burst,
        rate_per_key = given.rate_per_key,
        gated = given.total IS NOT NULL OR given.per_key IS NOT NULL OR given.rate_interval IS NOT NULL OR s.limits <> '{}'
            OR s.weights IS NOT NULL OR s.paused_keys <> '{}' OR code -> 'share' IS NOT NULL
    WHERE s.name = which;
END $$;

-- Lock order: specs (3) by name, then leases (4) by id, then queue (6).
CREATE OR REPLACE FUNCTION override(
    me text, skew float8, seen float8, which text, new_spec text, new_enabled boolean, new_total integer, new_per_key integer,
    new_interval float8, new_burst integer, new_each boolean,
    OUT now float8, OUT hinted text[], OUT touched text[], OUT answers text[]
) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    known specs;
    stored text;
    fresh text[];
    after_it specs;
    regated boolean;
    dues float8[] := '{}';
BEGIN
    touched := '{}'; hinted := '{}';
    WITH added AS (
        INSERT INTO specs (name, spec, enabled, gated)
        SELECT n, json_build_object('name', n)::text, true, false FROM unnest(ARRAY[which, 'override ' || which]) AS n
        ORDER BY n COLLATE "C" ON CONFLICT DO NOTHING RETURNING name
    ) SELECT array_agg(a.name) INTO fresh FROM added a;
    PERFORM FROM specs s WHERE s.name = ANY(ARRAY[which, 'override ' || which]) ORDER BY s.name FOR UPDATE;
    PERFORM FROM leases l WHERE l.task = which ORDER BY l.id FOR NO KEY UPDATE;
    now := now_of(skew, seen, true);
    SELECT s.spec INTO stored FROM specs s WHERE s.name = 'override ' || which;
    SELECT * INTO known FROM specs s WHERE s.name = which;
    answers := ARRAY['unchanged'];
    IF stored = new_spec THEN RETURN; END IF;
    answers := ARRAY['conflict'];
    IF coalesce((new_spec::json -> 'overrides' ->> 'version')::integer, 0)
       <> coalesce((stored::json -> 'overrides' ->> 'version')::integer, 0) + 1 THEN
        DELETE FROM specs s WHERE s.name = ANY(fresh);
        RETURN;
    END IF;
    answers := ARRAY['changed'];
    UPDATE specs SET spec = new_spec, enabled = new_enabled, total = new_total, per_key = new_per_key,
        rate_interval = new_interval, rate_burst = new_burst, rate_per_key = new_each WHERE name = 'override ' || which;
    PERFORM put_in_force(which);
    SELECT * INTO after_it FROM specs s WHERE s.name = which;
    IF after_it.gated THEN
        UPDATE leases SET gated = true WHERE task = which AND NOT gated;
        PERFORM recount_running(ARRAY[which], now);
    END IF;
    IF (after_it.rate_interval, after_it.rate_burst, after_it.rate_per_key)
        IS DISTINCT FROM (known.rate_interval, known.rate_burst, known.rate_per_key) THEN
        DELETE FROM rates WHERE task = which;  -- the old rate may have no token for days
        regated := true;
    END IF;
    IF regated OR (after_it.total, after_it.per_key) IS DISTINCT FROM (known.total, known.per_key) THEN
        UPDATE queue SET hold = 0, lane_at = lane_place(task, queue, priority, due_at, now) WHERE hold = 1 AND task = which;
        dues := announce(which, now);
    ELSIF after_it.enabled AND NOT known.enabled THEN
        dues := announce(which, now);
    END IF;
    hinted := to_hint(array_fill(any_lane(which), ARRAY[cardinality(dues)]), dues, now);
    IF (SELECT r.last_value FROM record_until r) > now * {PER_SECOND} THEN
        PERFORM record_events(me, 'tasks', ARRAY['declared'], ARRAY[which], ARRAY[which], NULL, ARRAY['changed'], NULL, now);
    END IF;
    PERFORM send_hints(me, hinted, touched);
END $$;
