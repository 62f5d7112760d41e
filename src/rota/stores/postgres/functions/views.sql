-- twin: rota/stores/fields.py
-- A run, from each of the three tables, and from all of them. The columns are those of rota/stores/fields.py. A new column goes
-- behind the others: a view cannot be replaced by one that has its columns in another order.

CREATE OR REPLACE VIEW queue_runs AS SELECT {queue_view} FROM queue;

CREATE OR REPLACE VIEW lease_runs AS SELECT {leases_view} FROM leases;

CREATE OR REPLACE VIEW finished_runs AS SELECT {finished_view} FROM finished;

CREATE OR REPLACE VIEW runs AS
SELECT * FROM queue_runs UNION ALL SELECT * FROM lease_runs UNION ALL SELECT * FROM finished_runs;

-- What a claim answers: one row with a header, and a row for each run and each schedule. A schedule is its id in `name`
-- and all of it as JSON in `header`.
CREATE OR REPLACE VIEW claimed AS SELECT NULL::text AS kind, NULL::text AS name, NULL::text AS header, r.* FROM runs r;
