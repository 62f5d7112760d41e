-- with: clock book policies holds hints timetable
-- twin: rota/stores/redis/store.py
-- aside: what a claim brought and this version cannot read. Runs go back as if they had not been claimed, but later;
-- nobody has worked on them, so their fence may be given out again. Lapsed ones and schedules are offered later.
local request = cmsgpack.unpack(ARGV[3])
local worker, n, claimed, lapsed, due = request[1], request[2], request[3], request[4], request[5]
local later, soon = after(now, UNREADABLE), after(now, OFFER_AGAIN)

for _, id in ipairs(claimed) do
  local run = book.get(id)
  if run and run.state == "r" and run.lease[L_WORKER] == worker and run.lease[L_N] == n then
    book.leave(run)
    run.state, run[DUE_AT], run.lease = "q", later, nil
    book.enter(run)
    book.restate(run) -- the record itself stays as it is, its due time too
    holds.freed(run, "r", now)
  end
end
for _, id in ipairs(lapsed) do
  local at = tonumber(call("ZSCORE", LAPSE, id))
  if at and at <= soon then book.zput(LAPSE, id, later) end -- else it was renewed meanwhile
end
for i = 1, #due, 2 do
  if call("HGET", SCHEDULES, due[i]) == due[i + 1] and call("ZSCORE", LOOK, due[i]) then book.zput(LOOK, due[i], later) end
end
hints.conclude()
return { instant(now) }
