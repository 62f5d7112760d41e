-- How often a run was asked for, and when it was last: by the put that made it, and by each that joined it since.
ALTER TABLE runs ADD COLUMN touches INTEGER NOT NULL DEFAULT 1;
ALTER TABLE runs ADD COLUMN touched_at REAL;                        -- NULL: when it was made
