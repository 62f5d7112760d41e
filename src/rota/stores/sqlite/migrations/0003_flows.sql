-- Runs that belong together: the period of a flow, a chain, a plan. What a run waits for may also be a name, as in
-- domain.needs: something that is done, whoever does it.
ALTER TABLE runs ADD COLUMN grp TEXT;
CREATE INDEX runs_grouped ON runs (grp) WHERE grp IS NOT NULL;
