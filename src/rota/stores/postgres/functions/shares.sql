-- twin: rota/stores/ledger/shares.py
-- Turns: the waiting runs of a task that have a share start by weighted round robin over their shares.
-- Lock order: a task whose runs take turns has a gate, which the caller has locked. So its turns do not change.

-- The weight of a share; `weights` is JSON.
CREATE OR REPLACE FUNCTION weight(weights text, of_share text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce((weights::json ->> of_share)::integer, 1)
$$;

-- The shares of a lane that have a run to start, up to `most` of them: from the one whose turn it is on, in a ring. One look-up
-- finds the next share and another its first run to start; so does a share whose runs are all due later.
CREATE OR REPLACE FUNCTION next_shares(
    of_task text, in_queue text, level smallint, first_share text, most integer, suspects boolean, now float8
) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    shares text[] := '{}';
    at text := coalesce(first_share, '');
    wrapped boolean := first_share IS NULL;
BEGIN
    IF startable_share(of_task, in_queue, level, first_share, suspects, now) THEN shares := ARRAY[first_share]; END IF;
    WHILE cardinality(shares) < most LOOP
        at := (SELECT q.share FROM queue q WHERE q.hold = 0 AND q.share IS NOT NULL AND q.task = of_task AND q.queue = in_queue
                 AND q.priority = level AND q.share > at COLLATE "C" ORDER BY q.share, q.due_at, q.seq LIMIT 1);
        IF at IS NULL AND NOT wrapped THEN
            at := ''; wrapped := true;
            CONTINUE;
        END IF;
        EXIT WHEN at IS NULL OR (wrapped AND at COLLATE "C" >= first_share);
        IF startable_share(of_task, in_queue, level, at, suspects, now) THEN shares := shares || at; END IF;
    END LOOP;
    RETURN shares;
END $$;

-- Whether a share has a run that may start.
CREATE OR REPLACE FUNCTION startable_share(
    of_task text, in_queue text, level smallint, of_share text, suspects boolean, now float8
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN EXISTS (SELECT FROM queue q WHERE q.hold = 0 AND q.share = of_share AND q.task = of_task AND q.queue = in_queue
                   AND q.priority = level AND q.due_at <= now AND (q.expires_at IS NULL OR q.expires_at > now)
                   AND (suspects OR q.losses = 0));
END $$;

-- The next `most` due runs of a lane that have a share, in the order of their turns. The share whose turn it is gets the rest of
-- its turn (round 0). Then come rounds, in each of which every share gets as many runs as its weight says, in the order of
-- the shares behind that one. A round has a run of each share, so `most` shares are enough.
CREATE OR REPLACE FUNCTION in_turn(
    of_task text, in_queue text, level smallint, weights text, most integer, suspects boolean, now float8
) RETURNS TABLE (id text, due_at float8, seq bigint, place bigint) LANGUAGE plpgsql AS $$
DECLARE
    turn turns;
    shares text[];
BEGIN
    SELECT t.* INTO turn FROM turns t WHERE t.task = of_task AND t.queue = in_queue AND t.priority = level;
    shares := next_shares(of_task, in_queue, level, turn.share, most + 1, suspects, now);
    IF shares = '{}' THEN RETURN; END IF;
    RETURN QUERY
    SELECT r.id::text, r.due_at, r.seq, row_number() OVER (ORDER BY
        CASE WHEN r.place <= s.remainder THEN 0 ELSE 1 + (r.place - s.remainder - 1) / s.weight END,
        coalesce(s.share COLLATE "C" <= turn.share, false), s.share COLLATE "C", r.place)
    FROM (SELECT k.share, weight(weights, k.share) AS weight,
                 CASE WHEN k.share = turn.share THEN greatest(0, weight(weights, k.share) - turn.got) ELSE 0 END AS remainder
          FROM unnest(shares) AS k (share)) AS s
    CROSS JOIN LATERAL (
        SELECT q.id, q.due_at, q.seq, row_number() OVER (ORDER BY q.due_at, q.seq) AS place FROM (
            SELECT q.id, q.due_at, q.seq FROM queue q
            WHERE q.hold = 0 AND q.share = s.share AND q.task = of_task AND q.queue = in_queue AND q.priority = level
              AND q.due_at <= now AND (q.expires_at IS NULL OR q.expires_at > now) AND (suspects OR q.losses = 0)
            ORDER BY q.due_at, q.seq LIMIT s.weight * (2 + most / cardinality(shares))) AS q
    ) AS r
    ORDER BY 4 LIMIT most;
END $$;

-- Count the runs `taken`, which are leased by now and in the order of their turns, for their shares.
CREATE OR REPLACE FUNCTION keep_turns(taken text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    run record;
BEGIN
    FOR run IN SELECT l.task, l.queue, l.priority, l.share, weight(s.weights, l.share) AS weight
               FROM unnest(taken) WITH ORDINALITY AS t (id, place) JOIN leases l ON l.id = t.id JOIN specs s ON s.name = l.task
               WHERE l.share IS NOT NULL AND s.weights IS NOT NULL ORDER BY t.place
    LOOP
        INSERT INTO turns AS t VALUES (run.task, run.queue, run.priority, run.share, 1)
        ON CONFLICT (task, queue, priority) DO UPDATE SET share = excluded.share,
            got = CASE WHEN t.share = excluded.share AND t.got < run.weight THEN t.got + 1 ELSE 1 END;
    END LOOP;
END $$;

-- The next `look` due runs of these lanes. The tasks `shared` have runs that take turns: among the runs of other lanes, these
-- come where the first run of their lane would come. A run of such a task that has no share comes when it is due for longest.
CREATE OR REPLACE FUNCTION mixed(
    l_tasks text[], l_queues text[], l_priorities smallint[], l_floors float8[], l_heads float8[], shared text[], look integer,
    suspects boolean, now float8
) RETURNS text[] LANGUAGE sql AS $$
    SELECT ARRAY(SELECT c.id FROM (
        SELECT q.id::text, lane.priority, q.due_at, q.seq
        FROM unnest(l_tasks, l_queues, l_priorities, l_floors) AS lane (task, queue, priority, floor) CROSS JOIN LATERAL (
            SELECT q.id, q.due_at, q.seq, q.share FROM queue q
            WHERE q.hold = 0 AND q.task = lane.task AND q.queue = lane.queue AND q.priority = lane.priority
              AND q.lane_at BETWEEN lane.floor AND now
              AND (q.expires_at IS NULL OR q.expires_at > now) AND (suspects OR q.losses = 0)
            ORDER BY q.lane_at, q.due_at, q.seq LIMIT look) AS q
        WHERE q.share IS NULL OR lane.task <> ALL(shared)
        UNION ALL
        SELECT t.id, lane.priority, lane.head, t.place
        FROM unnest(l_tasks, l_queues, l_priorities, l_heads) AS lane (task, queue, priority, head)
        JOIN specs s ON s.name = lane.task
        CROSS JOIN LATERAL in_turn(lane.task, lane.queue, lane.priority, s.weights, look, suspects, now) AS t
        WHERE lane.task = ANY(shared)
    ) AS c ORDER BY c.priority DESC, c.due_at, c.seq LIMIT look)
$$;

-- The weights in the spec of a task, which is JSON; NULL: its runs take no turns.
CREATE OR REPLACE FUNCTION weights_of(spec text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN json_typeof(spec::json -> 'share') = 'object' THEN coalesce((spec::json -> 'share' -> 'weights')::text, '{}') END
$$;
