-- with: clock book events policies holds hints admit audit
-- twin: rota/stores/ledger/edit.py rota/domain/edits.py
-- edit: people change queued runs. An edit has the id, the due time, the expiry and the priority; the body and whether it is
-- stored apart; the body that it replaces, and the share. Fields that it leaves as they are are false.
local request = cmsgpack.unpack(ARGV[3])
local edits, note, by = request[1], request[2] or false, request[3]

local function rewrite(run, body, apart)
  admit.begin_afresh(run)
  run[BODY] = not apart and body
  if apart then
    call("SET", ROOT .. "b:" .. run.id, body)
  elseif run.apart then
    call("DEL", ROOT .. "b:" .. run.id)
  end
  run.apart = apart and true
end

-- Hint a worker if `run` may start sooner than before, and let another run start if it is later.
local function move(run, state, before, level)
  if run.state == "q" and (run[DUE_AT] < before or state ~= "q") then book.arrive_run(run) end
  if run[DUE_AT] > before or run[PRIORITY] < level then holds.freed(run, state, before) end
end

local function edit_run(edit)
  local run, due, expires, priority, body = book.get(edit[1]), edit[2], edit[3], edit[4], edit[5]
  if not run or not book.is_queued(run) or (run[EXPIRES_AT] and run[EXPIRES_AT] <= now) then return "stale" end
  local known = body and book.body_of(run)
  if body and known ~= body and known ~= edit[7] then return "stale" end
  local state, before, level, expiry = run.state, run[DUE_AT], run[PRIORITY], run[EXPIRES_AT]
  book.leave(run)
  run[DUE_AT], run[PRIORITY] = due and after(due, 0) or before, priority or level
  run[EXPIRES_AT] = expires and after(expires, 0) or holds.moved_expiry(run, before)
  local moved, share = run[DUE_AT] ~= before or run[PRIORITY] ~= level, run[SHARE]
  run[SHARE] = edit[8] or share
  run.state = book.queued_state(run, state == "k" and not moved)
  if body and known ~= body then rewrite(run, body, edit[6]) end
  book.enter(run)
  if not moved and run[EXPIRES_AT] == expiry and known == body and run[SHARE] == share then return "unchanged" end
  book.save(run)
  touched[run.id] = true
  events.record_run("edited", run, "edited")
  policies.count_decision(run[TASK], run[KEY], "edited", 1, run.id, note, by)
  move(run, state, before, level)
  return "changed"
end

local ids, answer = {}, { instant(now) }
for i, edit in ipairs(edits) do ids[i] = edit[1] end
book.load(ids)
for i, edit in ipairs(edits) do answer[i + 1] = edit_run(edit) end
audit.keep(ARGV[4], answer)
hints.conclude()
return answer
