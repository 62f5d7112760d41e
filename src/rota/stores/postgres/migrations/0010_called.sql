-- Whether somebody was called for a run says nothing: missed looks for what is due.
ALTER TABLE queue DROP COLUMN called;
