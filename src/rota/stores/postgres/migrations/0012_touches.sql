-- How often a run was asked for, and when it was last: by the put that made it, and by each that joined it since. NULL: once,
-- when it was made.
ALTER TABLE queue ADD COLUMN touches integer, ADD COLUMN touched_at float8;
ALTER TABLE leases ADD COLUMN touches integer, ADD COLUMN touched_at float8;
ALTER TABLE finished ADD COLUMN touches integer, ADD COLUMN touched_at float8;

-- A run, from each of the three tables and wherever it is.
CREATE OR REPLACE VIEW queue_runs AS
SELECT seq, id, CASE hold WHEN 3 THEN 'paused' ELSE 'queued' END AS state, due_at, expires_at, fence, failures, losses,
       NULL::text AS worker, NULL::float8 AS claimed_at, NULL::float8 AS until, false AS cancel_asked,
       false AS pause_asked, hold = 1 AS parked, NULL::text AS reason, note, error, NULL::float8 AS finished_at,
       attempts, progress, task, key, unique_key, marked, priority, created_at, needs, awaited, rest,
       NULL::bytea AS result, saved, body,
       coalesce(touches, 1) AS touches, coalesce(touched_at, created_at) AS touched_at
FROM queue;

CREATE OR REPLACE VIEW lease_runs AS
SELECT seq, id, 'running'::text AS state, due_at, expires_at, fence, failures, losses, worker::text, claimed_at, until,
       cancel_asked, pause_asked, false AS parked, NULL::text AS reason, note, error, NULL::float8 AS finished_at,
       attempts, progress, task, key, unique_key, marked, priority, created_at, needs, awaited, rest,
       NULL::bytea AS result, saved, body,
       coalesce(touches, 1) AS touches, coalesce(touched_at, created_at) AS touched_at
FROM leases;

CREATE OR REPLACE VIEW finished_runs AS
SELECT seq, id, state::text, due_at, expires_at, fence, failures, losses, NULL::text AS worker,
       NULL::float8 AS claimed_at, NULL::float8 AS until, cancel_asked, pause_asked, false AS parked, reason::text,
       note, error, finished_at, attempts, progress, task, key, unique_key, marked, priority, created_at, needs,
       awaited, rest, result, saved, body,
       coalesce(touches, 1) AS touches, coalesce(touched_at, created_at) AS touched_at
FROM finished;

CREATE OR REPLACE VIEW runs AS
SELECT * FROM queue_runs UNION ALL SELECT * FROM lease_runs UNION ALL SELECT * FROM finished_runs;

-- What a claim answers: a header, and a run or a schedule (its id, and all of it as JSON in its header) per row.
CREATE OR REPLACE VIEW claimed AS SELECT NULL::text AS kind, NULL::text AS name, NULL::text AS header, r.* FROM runs r;
