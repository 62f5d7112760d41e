-- with: clock book policies holds hints
-- twin: rota/stores/ledger/settle.py
-- settle: compare-and-set on (run, fence, worker), each ending in one step: attempt, state or queue, mark, release.
local words = { s = "succeeded", f = "failed", c = "cancelled" }
local endings = cmsgpack.unpack(ARGV[3])

-- The fence alone does not say whose claim it was: a replica that never heard of one hands its fence out again.
local function is_of(lease, ending)
  return lease[L_FENCE] == ending[E_FENCE] and lease[L_WORKER] == ending[E_WORKER]
end

local function judge(run, ending)
  if not run then return "stale" end
  if run.state == "r" and is_of(run.lease, ending) then
    return (run.lease[L_UNTIL] <= now or not ending[E_LOST]) and "applied" or "stale"
  end
  -- A zombie shares its fence with the rescuer that settled it as lost: only the same kind of ending is a resend.
  for _, attempt in ipairs(run[ATTEMPTS] or {}) do
    local same = attempt[1] == ending[E_FENCE] and attempt[2] == ending[E_WORKER]
    if same and (attempt[3] == "lost") == ending[E_LOST] then return "already" end
  end
  return "stale"
end

local function record_attempt(run, ending)
  local lease, attempts = run.lease, run[ATTEMPTS] or {}
  attempts[#attempts + 1] =
    { lease[L_FENCE], lease[L_WORKER], ending[E_OUTCOME], lease[L_CLAIMED_AT], now, ending[E_ATTEMPT] }
  if #attempts > ATTEMPTS_KEPT then table.remove(attempts, 1) end
  run[ATTEMPTS], run[FENCE], run[ERROR] = attempts, lease[L_FENCE], ending[E_ERROR] or false
  run[PROGRESS] = ending[E_PROGRESS] or run[PROGRESS]
  run[SAVED] = ending[E_SAVED] or run[SAVED]
end

local function charge(run, ending)
  if ending[E_CHARGE] == "failure" then run[FAILURES] = run[FAILURES] + 1 end
  if ending[E_CHARGE] == "loss" then run[LOSSES] = run[LOSSES] + 1 end
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
        book.arrive(holder[TASK], holder[DUE_AT])
      end
      policies.count_decision(run[TASK], run[KEY], "superseded", 1, holder.id)
      return true
    end
  end
end

local function end_run(run, ending, state, reason)
  run[ASKED] = run.lease[L_CANCEL] and "cancel" or (run.lease[L_PAUSE] and "pause")
  book.leave(run) -- before the charge: indexes know it by what it was
  charge(run, ending)
  run.state = "-"
  book.finish(run, state, reason)
end

local function requeue(run, ending)
  local delay = ending[E_DELAY] or 0
  local due = delay > 0 and after(now, delay) or run[DUE_AT]
  local paused = run.lease[L_PAUSE]
  book.leave(run)
  charge(run, ending)
  run.state, run[DUE_AT] = "-", due
  if ending[E_CALLED] then run[EXPIRES_AT] = false end
  if run[UNIQUE_KEY] and give_way(run, due) then
    book.finish(run, "c", "superseded")
    return
  end
  run.state, run.lease = paused and "p" or book.waits(run, false), nil
  book.enter(run)
  book.save(run)
  if run.state == "q" then book.arrive(run[TASK], due) end
end

local function mark_after(run, ending)
  if not (run[WRITES_MARK] and ending[E_MARK]) or (run.state ~= "s" and run.state ~= "f") then return end
  local known = policies.mark_of(run[TASK], run[UNIQUE_KEY] or run[KEY] or "")
  known[M_FINISHED] = now
  if run.state == "s" then
    known[M_SUCCEEDED], known[M_FAILURES] = now, 0
  else
    known[M_FAILURES] = known[M_FAILURES] + 1
  end
  policies.put_mark(known)
end

-- What most endings are: the first call of a run that nothing else hangs on. Its fields stay as they were put, and the
-- later ones are written behind them, so that neither they nor the body need to be read. LATER_FIELDS are the local variables
-- fence, failures, ...: those that form x has more than form p.
local leases = {}

local function finish_first(ending, text, held)
  if not ending[E_STATE] or ending[E_LOST] or ending[E_STOPS] or not text or not held then return false end
  local lease = leases[held] or cmsgpack.unpack(held) -- one claim, one text for all its fresh runs
  leases[held] = lease
  local form = text:sub(1, 2)
  if (form ~= "rp" and form ~= "rP") or not is_of(lease, ending) then return false end
  local _, seq, _, _, _, task, key, unique, writes_mark = cmsgpack.unpack_limit(text, 8, 2)
  if unique or writes_mark or policies.is_gated(policies.spec_of(task)) then return false end
  local id, state = ending[E_ID], ending[E_STATE]
  local attempt = { lease[L_FENCE], lease[L_WORKER], ending[E_OUTCOME], lease[L_CLAIMED_AT], now, ending[E_ATTEMPT] }
  local LATER_FIELDS = LATER_BLANKS
  fence, finished_at, attempts = lease[L_FENCE], now, { attempt }
  if ending[E_CHARGE] == "failure" then failures = 1 elseif ending[E_CHARGE] == "loss" then losses = 1 end
  reason, error, result = ending[E_REASON] or false, ending[E_ERROR] or false, ending[E_RESULT] or false
  progress, saved = ending[E_PROGRESS] or false, ending[E_SAVED] or false
  asked = lease[L_CANCEL] and "cancel" or (lease[L_PAUSE] and "pause")
  call("SET", ROOT .. "r:" .. id, state .. (form == "rp" and "x" or "X") .. text:sub(3) .. cmsgpack.pack(LATER_FIELDS))
  book.hput(LEASES, id, false)
  book.zput(LAPSE, id, false)
  book.add(COUNTS, "r:" .. task, -1)
  if key then book.add(BUSY, "k" .. pair(task, key), -1) end
  book.zput(ROOT .. (state == "s" and "ended:" or "failed:") .. task, book.place(seq), now)
  book.zput(ROOT .. "histories", task, 0)
  touched[id] = true
  return true
end

local function settle(ending)
  local run = book.get(ending[E_ID])
  local verdict = judge(run, ending)
  if verdict ~= "applied" then return verdict end
  local cancelled = run.lease[L_CANCEL]
  record_attempt(run, ending)
  touched[run.id] = true
  if ending[E_STATE] then
    run[RESULT] = ending[E_RESULT] or run[RESULT]
    end_run(run, ending, ending[E_STATE], ending[E_REASON] or false)
  elseif cancelled then
    end_run(run, ending, "c", "cancelled") -- a finish beats a command, a requeue honours it
  else
    requeue(run, ending)
  end
  mark_after(run, ending)
  if book.is_final(run) then holds.release(run) end -- after its mark, which decides about the runs that wait for it
  holds.freed(run, "r", run[DUE_AT])
  if ending[E_STOPS] and book.is_final(run) then
    holds.cancel_all(holds.waiting_in(ending[E_STOPS]), "stopped", run[TASK] .. " " .. words[run.state])
  end
  return verdict
end

local ids, keys, answer = {}, {}, { instant(now) }
for i, ending in ipairs(endings) do
  ids[i], keys[i] = ending[E_ID], ROOT .. "r:" .. ending[E_ID]
end
for first = 1, #ids, ARGUMENTS do
  local last = math.min(#ids, first + ARGUMENTS - 1)
  local texts, held = call("MGET", unpack(keys, first, last)), call("HMGET", LEASES, unpack(ids, first, last))
  for i = first, last do
    local at, seen = i - first + 1, touched[ids[i]] or runs[ids[i]] ~= nil
    local done = not seen and finish_first(endings[i], texts[at], held[at])
    answer[i + 1] = done and "applied" or settle(endings[i])
  end
end
hints.conclude()
return answer
