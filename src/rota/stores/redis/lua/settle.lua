-- with: clock book events policies holds hints
-- twin: rota/stores/ledger/settle.py
-- settle: end or requeue running runs. A settlement applies only to the lease with its fence and worker. It writes the
-- attempt, the state and the mark, and meets the needs of the runs that wait.
local state_names = { s = "succeeded", f = "failed", c = "cancelled", p = "paused" }
local settlements = cmsgpack.unpack(ARGV[3])

-- The fence alone is not enough: after a failover, a replica that missed a claim gives the same fence to another worker.
local function is_of(lease, settlement)
  return lease[L_FENCE] == settlement[E_FENCE] and lease[L_WORKER] == settlement[E_WORKER]
end

local function judge(run, settlement)
  if not run then return "stale" end
  if run.state == "r" and is_of(run.lease, settlement) then
    return (run.lease[L_UNTIL] <= now or not settlement[E_LOST]) and "applied" or "stale"
  end
  -- A rescue settles a run as lost under the fence and the name of the worker that lost it. If that worker still lives, its
  -- own settlement is stale: only a settlement of the same kind, lost or not, is one that was sent again.
  for _, attempt in ipairs(run[ATTEMPTS] or {}) do
    local same = attempt[1] == settlement[E_FENCE] and attempt[2] == settlement[E_WORKER]
    if same and (attempt[3] == "lost") == settlement[E_LOST] then return "already" end
  end
  return "stale"
end

local function record_attempt(run, settlement)
  local lease, attempts = run.lease, run[ATTEMPTS] or {}
  attempts[#attempts + 1] =
    { lease[L_FENCE], lease[L_WORKER], settlement[E_OUTCOME], lease[L_CLAIMED_AT], now, settlement[E_ATTEMPT] }
  if #attempts > ATTEMPTS_KEPT then table.remove(attempts, 1) end
  run[ATTEMPTS], run[FENCE], run[ERROR] = attempts, lease[L_FENCE], settlement[E_ERROR] or false
  run[PROGRESS] = settlement[E_PROGRESS] or run[PROGRESS]
  run[SAVED] = settlement[E_SAVED] or run[SAVED]
end

local function charge(run, settlement)
  if settlement[E_CHARGE] == "failure" then run[FAILURES] = run[FAILURES] + 1 end
  if settlement[E_CHARGE] == "loss" then run[LOSSES] = run[LOSSES] + 1 end
end

-- End `run` as superseded if it is about to wait again while another run with its unique key waits. A waiting run with the
-- same arguments takes the failures and the earlier due time of `run`. A waiting run with other arguments is other work: it
-- keeps its own due time and has no failures.
local function give_way(run, due)
  for _, holder in ipairs(holds.holders(run[TASK], run[UNIQUE_KEY])) do
    if holder.id ~= run.id and holder.state ~= "r" and not holds.is_behind(holder, run.id) then
      if book.body_of(holder) == book.body_of(run) then
        book.leave(holder)
        holder[DUE_AT], holder[FAILURES] = math.min(holder[DUE_AT], due), math.max(holder[FAILURES], run[FAILURES])
        if holder.state == "k" then holder.state = "q" end
        book.enter(holder)
        book.save(holder)
        book.arrive_run(holder)
      end
      policies.count_decision(run[TASK], run[KEY], "superseded", 1, holder.id)
      return true
    end
  end
end

local function end_run(run, settlement, state, reason)
  run[COMMAND] = run.lease[L_CANCEL] and "cancel" or (run.lease[L_PAUSE] and "pause")
  book.leave(run) -- before the charge: the indexes depend on the number of losses
  charge(run, settlement)
  run.state = "-"
  book.finish(run, state, reason)
end

local function requeue(run, settlement)
  local delay = settlement[E_DELAY] or 0
  local due = delay > 0 and after(now, delay) or run[DUE_AT]
  local paused = run.lease[L_PAUSE]
  book.leave(run)
  charge(run, settlement)
  run.state, run[DUE_AT] = "-", due
  if settlement[E_CALLED] then run[EXPIRES_AT] = false end
  if run[UNIQUE_KEY] and give_way(run, due) then
    book.finish(run, "c", "superseded")
    return
  end
  run.state, run.lease = paused and "p" or book.queued_state(run, false), nil
  book.enter(run)
  book.save(run)
  if run.state == "q" then book.arrive_run(run) end
end

local function mark_after(run, settlement)
  if not (run[WRITES_MARK] and settlement[E_MARK]) or (run.state ~= "s" and run.state ~= "f") then return end
  local known = policies.mark_of(run[TASK], run[UNIQUE_KEY] or run[KEY] or "")
  known[M_FINISHED_AT] = now
  if run.state == "s" then
    known[M_SUCCEEDED_AT], known[M_FAILURES] = now, 0
  else
    known[M_FAILURES] = known[M_FAILURES] + 1
  end
  policies.put_mark(known)
end

-- The fast way for most settlements: the first call of a run without unique key, mark, limit and rate. The record keeps its
-- bytes, and the fields that form b adds to form a are appended: so the body is not unpacked. LATER_FIELDS are local
-- variables with the names of these fields: fence, failures, ...
local leases = {}

local function finish_first(settlement, text, lease_text)
  if not settlement[E_STATE] or settlement[E_LOST] or settlement[E_STOPS] or not text or not lease_text then return false end
  local lease = leases[lease_text] or cmsgpack.unpack(lease_text) -- the first leases of one claim have one text
  leases[lease_text] = lease
  local form = text:sub(1, 2)
  if (form ~= "ra" and form ~= "rA") or not is_of(lease, settlement) then return false end
  local _, seq, _, _, _, task, key, unique, writes_mark = cmsgpack.unpack_limit(text, 8, 2)
  if unique or writes_mark or lease[L_LIMITS] or policies.is_gated(policies.spec_of(task)) then return false end
  local id, state = settlement[E_ID], settlement[E_STATE]
  local attempt = { lease[L_FENCE], lease[L_WORKER], settlement[E_OUTCOME], lease[L_CLAIMED_AT], now, settlement[E_ATTEMPT] }
  local LATER_FIELDS = LATER_BLANKS
  fence, finished_at, attempts = lease[L_FENCE], now, { attempt }
  if settlement[E_CHARGE] == "failure" then failures = 1 elseif settlement[E_CHARGE] == "loss" then losses = 1 end
  reason, error, result = settlement[E_REASON] or false, settlement[E_ERROR] or false, settlement[E_RESULT] or false
  progress, saved = settlement[E_PROGRESS] or false, settlement[E_SAVED] or false
  command = lease[L_CANCEL] and "cancel" or (lease[L_PAUSE] and "pause")
  call("SET", ROOT .. "r:" .. id, state .. (form == "ra" and "b" or "B") .. text:sub(3) .. cmsgpack.pack(LATER_FIELDS))
  book.hput(LEASES, id, false)
  book.zput(LAPSE, id, false)
  book.add(COUNTS, "r:" .. task, -1)
  if key then book.add(BUSY, "k" .. pair(task, key), -1) end
  book.zput(ROOT .. (state == "s" and "ended:" or "failed:") .. task, book.place(seq), now)
  book.zput(ROOT .. "histories", task, 0)
  touched[id] = true
  events.record(state_names[state], "runs", id, task, key, state, reason, fence, lease[L_WORKER])
  if id:find(".", 1, true) then holds.count_in_fan(id, state) end
  return true
end

-- Record what became of `run`, which had `lease`.
local function record_settled(run, settlement, lease)
  local name = state_names[run.state] or (settlement[E_LOST] and "lost") or (settlement[E_ERROR] and "retried") or "queued"
  events.record_run(name, run, not book.is_final(run) and settlement[E_OUTCOME], lease)
end

local function settle_one(settlement)
  local run = book.get(settlement[E_ID])
  local verdict = judge(run, settlement)
  if verdict ~= "applied" then return verdict end
  local lease, cancelled, names = run.lease, run.lease[L_CANCEL], run.lease[L_LIMITS]
  record_attempt(run, settlement)
  touched[run.id] = true
  if settlement[E_STATE] then
    run[RESULT] = settlement[E_RESULT] or run[RESULT]
    end_run(run, settlement, settlement[E_STATE], settlement[E_REASON] or false)
  elseif cancelled then
    end_run(run, settlement, "c", "cancelled") -- a run that would be queued again obeys the cancel; one that ended does not
  else
    requeue(run, settlement)
  end
  record_settled(run, settlement, lease)
  mark_after(run, settlement)
  if book.is_final(run) then holds.release(run) end -- after its mark: see release
  holds.freed(run, "r", run[DUE_AT])
  if names then holds.freed_by(names, run[TASK]) end
  if settlement[E_STOPS] and book.is_final(run) then
    holds.cancel_group(settlement[E_STOPS], "stopped", run[TASK] .. " " .. state_names[run.state], {}, {})
  end
  return verdict
end

local ids, keys, answer = {}, {}, { instant(now) }
for i, settlement in ipairs(settlements) do
  ids[i], keys[i] = settlement[E_ID], ROOT .. "r:" .. settlement[E_ID]
end
for first = 1, #ids, ARGUMENTS do
  local last = math.min(#ids, first + ARGUMENTS - 1)
  local texts, lease_texts = call("MGET", unpack(keys, first, last)), call("HMGET", LEASES, unpack(ids, first, last))
  for i = first, last do
    local at, seen = i - first + 1, touched[ids[i]] or runs[ids[i]] ~= nil
    local done = not seen and finish_first(settlements[i], texts[at], lease_texts[at])
    answer[i + 1] = done and "applied" or settle_one(settlements[i])
  end
end
hints.conclude()
return answer
