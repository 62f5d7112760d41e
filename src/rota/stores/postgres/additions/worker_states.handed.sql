-- Workers that may be handed a run: see hand_over in functions/hints.sql. Processes of earlier versions neither read nor write
-- these columns, and their workers are handed nothing.
ALTER TABLE worker_states
    ADD COLUMN token  text,     -- of its last claim, if it may be handed a run
    ADD COLUMN ear    integer,  -- the server process of the connection that listens for it
    ADD COLUMN lasts  float8,   -- seconds of the leases of its claims
    ADD COLUMN spare  boolean,  -- it has a second free seat
    ADD COLUMN handed text;     -- the run that it was handed since its last claim
