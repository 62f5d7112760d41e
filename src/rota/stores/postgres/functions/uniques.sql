-- twin: rota/stores/ledger/uniques.py
-- Unique keys beyond the runs of one task: windows of time, and keys that several tasks share.

-- Lock the unique keys of `news` that tasks share. Race: a put of another task with the same key finds no run of this put in
-- the index of its task; so the second put waits here. Lock order: after names (5) and before queue (6), by number.
CREATE OR REPLACE FUNCTION lock_uniques(news incoming[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    number integer;
BEGIN
    FOR number IN SELECT DISTINCT hashtext(n.unique_row || ' ' || n.unique_key) FROM unnest(news) AS n
                  WHERE n.unique_row LIKE 'unique %' ORDER BY 1 LOOP
        PERFORM pg_advisory_xact_lock(lock_class('uniques'), number);
    END LOOP;
END $$;

-- The unfinished run of another task that shares the key of `new`, and the refusal because of it; NULL without one. One
-- statement looks for the run: it sees the run in one table also if a claim or a settle moves it meanwhile.
CREATE OR REPLACE FUNCTION held_by_other(new incoming, now float8, OUT run text, OUT reason text) LANGUAGE plpgsql AS $$
DECLARE
    holder text := (SELECT m.holder FROM marks m WHERE m.task = new.unique_row AND m.key = new.unique_key);
    id_ text := substr(holder, strpos(holder, ' ') + 1);
BEGIN
    IF holder IS NULL OR split_part(holder, ' ', 1) = new.task THEN RETURN; END IF;
    SELECT q.id, 'already_queued' INTO run, reason FROM queue q
    WHERE q.id = id_ AND (q.hold <> 3 AND q.expires_at <= now) IS NOT TRUE
    UNION ALL SELECT l.id, 'already_running' FROM leases l WHERE l.id = id_;
END $$;

-- The run whose success keeps `new` out, or the id of `new` if nobody knows that run; NULL if no success does. `done_at` is the
-- success in the mark of its task.
CREATE OR REPLACE FUNCTION done_by(new incoming, done_at float8, now float8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    known marks;
    other text;
BEGIN
    IF new.unique_row IS NULL THEN RETURN CASE WHEN done_at IS NOT NULL THEN new.id END; END IF;
    SELECT * INTO known FROM marks m WHERE m.task = new.unique_row AND m.key = new.unique_key;
    other := split_part(known.holder, ' ', 1);
    IF other <> new.task THEN
        done_at := greatest(done_at, (SELECT m.succeeded_at FROM marks m WHERE m.task = other AND m.key = new.unique_key));
    END IF;
    IF done_at IS NULL OR done_at < known.succeeded_at OR now >= coalesce(known.finished_at, done_at) + new.within THEN
        RETURN NULL;
    END IF;
    RETURN coalesce(substr(known.holder, strpos(known.holder, ' ') + 1), new.id);
END $$;

-- Note in the row of its unique key what became of `new`: if it was admitted (`added`), it has the key now and opens its
-- window; if it was not, a sliding window counts from now.
-- Lock order: marks (7), although a run of the batch may follow. Only puts write these rows, after they locked the key, and the
-- rows of the windows of a task in the order of its keys.
CREATE OR REPLACE FUNCTION note_unique(new incoming, added boolean, reason text, now float8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF added THEN
        INSERT INTO marks (task, key, succeeded_at, finished_at, failures, holder)
        VALUES (new.unique_row, new.unique_key, now, now, 0, new.task || ' ' || new.id)
        ON CONFLICT (task, key) DO UPDATE SET succeeded_at = excluded.succeeded_at, finished_at = excluded.finished_at,
            failures = 0, holder = excluded.holder;
    ELSIF new.sliding AND reason IN ('joined', 'already_queued', 'already_running', 'already_done') THEN
        UPDATE marks m SET finished_at = now
        WHERE m.task = new.unique_row AND m.key = new.unique_key AND m.finished_at IS NOT NULL;
    END IF;
END $$;
