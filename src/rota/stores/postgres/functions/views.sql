-- twin: rota/stores/fields.py
-- Views of runs: one for each of the three tables, and one for all of them. rota/stores/fields.py lists the columns. A new
-- column goes behind the others: PostgreSQL replaces a view only if the columns that it has keep their order.

CREATE OR REPLACE VIEW queue_runs AS SELECT {queue_view} FROM queue;

CREATE OR REPLACE VIEW lease_runs AS SELECT {leases_view} FROM leases;

CREATE OR REPLACE VIEW finished_runs AS SELECT {finished_view} FROM finished;

CREATE OR REPLACE VIEW runs AS
SELECT * FROM queue_runs UNION ALL SELECT * FROM lease_runs UNION ALL SELECT * FROM finished_runs;

-- The rows that a claim returns: one header, and one row for each run and each schedule. The row of a schedule has the id of
-- the schedule in `name` and the schedule as JSON in `header`.
CREATE OR REPLACE VIEW claimed AS SELECT NULL::text AS kind, NULL::text AS name, NULL::text AS header, r.* FROM runs r;

-- Workers as they are now.
CREATE OR REPLACE VIEW workers_seen AS
SELECT w.name, w.tasks, s.version, s.n, s.seen_at, s.wake_at, s.idle, s.batch, s.report,
       w.seats, w.quiet, w.stop, w.queues FROM workers w CROSS JOIN LATERAL (
    SELECT * FROM worker_states s WHERE s.name = w.name ORDER BY s.version DESC LIMIT 1) AS s;
