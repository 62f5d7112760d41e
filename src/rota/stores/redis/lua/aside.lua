-- with: clock book events policies holds hints schedules
-- twin: rota/stores/redis/store.py
-- aside: put off what a claim returned and its version cannot read. Claimed runs are queued again and due later; nobody has
-- worked on them, so another claim may use the same fence. Lapsed runs and schedules are offered again later.
local request = cmsgpack.unpack(ARGV[3])
local worker, n, claimed, lapsed, due = request[1], request[2], request[3], request[4], request[5]
local later, soon = after(now, UNREADABLE), after(now, OFFER_AGAIN)

for _, id in ipairs(claimed) do
  local run = book.get(id)
  if run and run.state == "r" and run.lease[L_WORKER] == worker and run.lease[L_N] == n then
    book.leave(run)
    run.state, run[DUE_AT], run.lease = "q", later, nil
    book.enter(run)
    book.restate(run) -- only the lane gets the new due time: the record stays as it is
    events.record_run("queued", run, "released")
    holds.freed(run, "r", now)
  end
end
for _, id in ipairs(lapsed) do
  local at = tonumber(call("ZSCORE", LAPSE, id))
  if at and at <= soon then book.zput(LAPSE, id, later) end -- else its lease was renewed since the claim
end
for i = 1, #due, 2 do
  if call("HGET", SCHEDULES, due[i]) == due[i + 1] and call("ZSCORE", LOOK, due[i]) then book.zput(LOOK, due[i], later) end
end
hints.conclude()
return { instant(now) }
