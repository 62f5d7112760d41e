-- twin: rota/stores/ledger/admit.py rota/stores/ledger/uniques.py
-- Admission: one script checks the guards of a new run and stores the run. The first guard that refuses wins.
local admit = {}

local seq = 0 -- anew
-- The hashes of keys that are not written yet, and the number of the first run.
local hashes, hashed_from = {}, nil -- anew

function admit.reserve(number)
  if number > 0 then seq = call("INCRBY", ROOT .. "seq", number) - number end
end

function admit.due_of(item)
  return item[I_AT] or after(now, item[I_DELAY] or 0)
end

function admit.expiry_of(item)
  if item[I_EXPIRES_AFTER] then return after(math.max(now, admit.due_of(item)), item[I_EXPIRES_AFTER]) end
  return item[I_EXPIRES_AT] or false
end

-- Gather the hash of a new run's key (see key_hash). What follows one another is written at once.
function admit.note_key(item)
  local key, unique = item[I_KEY], item[I_UNIQUE_KEY]
  if #hashes > 0 and (hashed_from + #hashes ~= seq or seq % KEY_BLOCK == 0) then admit.write_keys() end
  if #hashes == 0 then hashed_from = seq end
  local both = key and unique and key ~= unique
  hashes[#hashes + 1] = both and NO_HASH or ((key or unique) and key_hash(key or unique) or NO_KEY)
end

function admit.write_keys()
  if #hashes == 0 then return end
  call("SETRANGE", ROOT .. "kh:" .. math.floor(hashed_from / KEY_BLOCK), hashed_from % KEY_BLOCK * 2, table.concat(hashes))
  hashes = {}
end

-- Store a new run. If its id is there already, SET NX stores nothing: a put that is sent twice changes nothing the second
-- time, and gets the same answer.
function admit.bring_in(item, needs, parked, due)
  local id, task, expires = item[I_ID], item[I_TASK], admit.expiry_of(item)
  seq = seq + 1
  local state, form = needs and "w" or (parked and "k" or "q"), item[I_APART] and "A" or "a"
  local text = cmsgpack.pack(seq, now, due ~= now and due, expires) .. item[I_TAIL]
  if not call("SET", ROOT .. "r:" .. id, state .. form .. text, "NX") then return end
  events.record("queued", "runs", id, task, item[I_KEY], state, "accepted")
  runs[id] = nil
  if item[I_APART] then call("SET", ROOT .. "b:" .. id, item[I_APART]) end
  local bucket = math.floor(seq / BUCKET)
  book.hput(ROOT .. "o:" .. bucket, seq, id)
  book.zput(BUCKETS, bucket, bucket)
  admit.note_key(item)
  if item[I_QUEUE] or item[I_SHARE] then
    local run = book.get(id)
    run[QUEUE], run[SHARE] = item[I_QUEUE] or false, item[I_SHARE] or false
    book.save(run)
  end
  if state == "q" then
    book.add(COUNTS, "q:" .. task, 1)
    book.lane_add(item[I_PRIORITY] .. ":" .. book.lane_name(task, item[I_QUEUE], item[I_SHARE]), seq, due, item[I_SHARE])
    if expires then book.zput(EXPIRING, id, expires) end
    book.arrive(book.lane_name(task, item[I_QUEUE]), due)
    newcomer = id
  else
    book.enter(book.get(id))
  end
  if item[I_CALLBACKS] then
    local run = book.get(id)
    run[AWAITED] = true
    book.save(run)
    book.hput(CALLBACKS, id, cmsgpack.pack(item[I_CALLBACKS]))
  end
  if needs or KEPT_GIVEN then
    local run = book.get(id)
    run[NEEDS], run[COOLDOWNS] = needs or false, needs and item[I_BEHIND] and item[I_COOLDOWNS] or false
    KEEP_GIVEN
    book.save(run)
  end
  if item[I_UNIQUE_KEY] then
    local ids = book.holders_of(task, item[I_UNIQUE_KEY])
    ids[#ids + 1] = id
    book.hold_unique(task, item[I_UNIQUE_KEY], ids)
  end
  if item[I_GROUP] then
    book.zput(ROOT .. "g:" .. item[I_GROUP], id, seq)
    book.hput(GROUPED, id, item[I_GROUP])
  end
end

function admit.admit(item)
  local id, task = item[I_ID], item[I_TASK]
  if item[I_FINGERPRINT] then
    local reason = admit.known_id(item)
    if reason then return id, reason end
  end
  local spec = policies.spec_of(task)
  local enabled = not spec or spec[S_ENABLED]
  local guarded = item[I_UNIQUE_KEY] or item[I_COOLDOWNS] or item[I_MAX_PENDING]
  if (guarded or item[I_NEEDS] or item[I_CALLBACKS] or not enabled) and book.get(id) then return id, "accepted" end
  if not enabled then return id, "disabled" end
  if guarded then
    local run, reason = admit.refusal(item)
    if run then
      admit.slide(item, reason)
      return run, reason
    end
  end
  if item[I_JOIN] == "replace" then admit.replace_holders(item) end
  local needs = item[I_NEEDS]
  if item[I_BEHIND] then needs = admit.equals_of(item, needs) end
  needs = needs and holds.unmet(id, needs)
  local due = admit.due_of(item)
  local per_key, key = spec and spec[S_PER_KEY], item[I_KEY]
  local parked = per_key and key and due <= now and book.count(BUSY, "k" .. pair(task, key)) >= per_key
  admit.bring_in(item, needs, parked, due)
  if item[I_UNIQUE_ROW] then admit.note_unique(item) end
  if item[I_FINGERPRINT] then book.hput(IDS, id, item[I_FINGERPRINT]) end
  return id, "accepted"
end

-- Admit each of `items`, in their order. Count the decisions that are no admission. Return the run and the reason of each.
function admit.admit_all(items)
  local ids, reasons = {}, {}
  for i, item in ipairs(items) do
    local run, reason = admit.admit(item)
    local same = reason == "joined" and run == item[I_ID] -- its id was put before: perhaps this put, sent again
    if reason == "accepted" then policies.count_decided(item[I_TASK], reason, 1) end
    if reason ~= "accepted" and not same then policies.count_decision(item[I_TASK], item[I_KEY], reason, 1, run) end
    if reason ~= "accepted" and reason ~= "joined" then
      events.record("refused", "runs", run, item[I_TASK], item[I_KEY], false, reason)
    end
    ids[i], reasons[i] = run, reason
  end
  admit.write_keys()
  return ids, reasons
end

-- seldom

-- The expiry after a join: that of `item`, counted from the due time after the join. A join never makes a run expire
-- before it is due.
function admit.joined_expiry(run, item, before)
  if item[I_EXPIRES_AFTER] then return after(math.max(now, run[DUE_AT]), item[I_EXPIRES_AFTER]) end
  if item[I_EXPIRES_AT] and item[I_EXPIRES_AT] > run[DUE_AT] then return item[I_EXPIRES_AT] end
  return holds.moved_expiry(run, before)
end

-- `run` gets other arguments: its failures, losses, checkpoint and progress belong to the old arguments and are dropped.
-- The attempts stay for people to read, and a row `replaced` behind them has the time of the change. If the arguments change
-- again before a call, that row gets the new time: many such rows would push the attempts out of the list.
function admit.begin_afresh(run)
  local attempts = run[ATTEMPTS]
  if attempts then
    if attempts[#attempts][3] == "replaced" then table.remove(attempts) end
    attempts[#attempts + 1] = { run[FENCE], "", "replaced", now, now, "[]" }
    if #attempts > ATTEMPTS_KEPT then table.remove(attempts, 1) end
  end
  run[FAILURES], run[LOSSES], run[SAVED], run[PROGRESS], run[ERROR] = 0, 0, false, false, false
end

-- Give `run` the arguments of `item`.
function admit.rewrite(run, item)
  local body, id = select(7, cmsgpack.unpack_limit(item[I_TAIL], 6, 0)), run.id
  if (item[I_APART] or body) ~= book.body_of(run) then admit.begin_afresh(run) end
  run[BODY] = body
  if item[I_APART] then
    call("SET", ROOT .. "b:" .. id, item[I_APART])
  elseif run.apart then
    call("DEL", ROOT .. "b:" .. id)
  end
  run.apart = item[I_APART] and true
end

-- Give `run`, which waits, the arguments of `item`, and move its due time as `item` asks; the higher priority wins. If the
-- arguments differ, the run starts afresh. If `item` belongs to a group, its needs replace those of the run.
function admit.join_holder(run, item)
  local how = item[I_JOIN] or "keep"
  if how == "refuse" then return run.id, "already_queued" end
  if how == "full" then return run.id, "buffer_full" end
  local state, before, priority = run.state, run[DUE_AT], run[PRIORITY]
  local due, wanted = before, admit.due_of(item)
  if how == "push" then
    if item[I_MAX_WAIT] then wanted = math.min(wanted, run[CREATED_AT] + item[I_MAX_WAIT]) end
    due = math.max(before, wanted)
  elseif how == "set" then
    due = wanted
  end
  book.leave(run)
  run[DUE_AT], run[PRIORITY] = due, math.max(priority, item[I_PRIORITY])
  run[EXPIRES_AT] = admit.joined_expiry(run, item, before)
  run[TOUCHES], run[TOUCHED_AT] = run[TOUCHES] + 1, now
  if item[I_GROUP] then
    book.wait_no_more(run)
    run[NEEDS] = holds.unmet(run.id, item[I_NEEDS] or {})
  end
  -- A parked run that moved is unparked: the next claim checks the limit again, at the run's new place in line.
  local moved = due ~= before or run[PRIORITY] ~= priority
  if state ~= "p" then run.state = book.queued_state(run, state == "k" and not moved) end
  admit.rewrite(run, item)
  book.enter(run)
  book.save(run)
  events.record_run("joined", run, "joined")
  if run.state == "q" and (due < before or state ~= "q") then book.arrive_run(run) end
  if due > before or run.state == "w" then holds.freed(run, state, before) end
  return run.id, "joined"
end

function admit.cooldown_reason(rules, mark)
  if not mark[M_FINISHED_AT] then return end
  for _, rule in ipairs(rules) do
    if mark[M_FAILURES] >= rule[1] and now < mark[M_FINISHED_AT] + rule[2] then return rule[3] end
  end
end

-- The row of unique keys of `item` (rota/stores/ledger/uniques.py), and the task and id of the run that has its key.
function admit.unique_row(item)
  local row = policies.mark_of(item[I_UNIQUE_ROW], item[I_UNIQUE_KEY])
  local task, id = (row[M_HOLDER] or ""):match("^(%S+) (.*)$")
  return row, task, id
end

-- Return the refusal because of an unfinished run of another task that shares the key of `item`.
function admit.held_by_other(item)
  local _, task, id = admit.unique_row(item)
  local run = id and task ~= item[I_TASK] and book.get(id)
  if not run or book.is_final(run) or holds.is_late(run) then return end
  return id, run.state == "r" and "already_running" or "already_queued"
end

-- Return the run whose success keeps `item` out, or its own id if nobody knows that run. `mark` is that of its task.
function admit.done_by(item, mark)
  if not item[I_UNIQUE_ROW] then return mark[M_SUCCEEDED_AT] and item[I_ID] end
  local row, task, id = admit.unique_row(item)
  local other = task and task ~= item[I_TASK] and policies.mark_of(task, item[I_UNIQUE_KEY])
  local done = math.max(mark[M_SUCCEEDED_AT] or 0, other and other[M_SUCCEEDED_AT] or 0)
  if done == 0 or done < (row[M_SUCCEEDED_AT] or 0) then return end
  if item[I_WITHIN] and now >= (row[M_FINISHED_AT] or done) + item[I_WITHIN] then return end
  return id or item[I_ID]
end

-- `item` is accepted: it has its key now, and opens its window.
function admit.note_unique(item)
  policies.put_mark({ item[I_UNIQUE_ROW], item[I_UNIQUE_KEY], now, now, 0, item[I_TASK] .. " " .. item[I_ID] })
end

local ARRIVED = { joined = true, already_queued = true, already_running = true, already_done = true }

-- A submit of the key came and made no run: a sliding window counts from now.
function admit.slide(item, reason)
  if not (item[I_SLIDING] and item[I_UNIQUE_ROW] and ARRIVED[reason]) then return end
  local row = admit.unique_row(item)
  if row[M_FINISHED_AT] then
    row[M_FINISHED_AT] = now
    policies.put_mark(row)
  end
end

-- Return a refusal, or the run that `item` joins; nothing if `item` is admitted.
function admit.refusal(item)
  local task, unique = item[I_TASK], item[I_UNIQUE]
  if unique and item[I_UNIQUE_KEY] then
    if item[I_UNIQUE_ROW] then
      local run, reason = admit.held_by_other(item)
      if run then return run, reason end
    end
    local found = holds.holders(task, item[I_UNIQUE_KEY])
    local waiting -- if two wait, one was tried and the other waits for its end: the untried run is joined
    for _, run in ipairs(found) do
      if run.state ~= "r" and (not waiting or run[FENCE] == 0) then waiting = run end
    end
    local spares_tried = item[I_JOIN] == "wait" or item[I_JOIN] == "replace"
    if waiting and not (spares_tried and waiting[FENCE] > 0) then return admit.join_holder(waiting, item) end
    if found[1] and unique ~= "queued" then
      return found[1].id, item[I_JOIN] == "full" and "buffer_full" or "already_running"
    end
  end
  local cooldowns, most = item[I_COOLDOWNS], item[I_MAX_PENDING]
  if unique == "done" or cooldowns then
    local mark = policies.mark_of(task, item[I_UNIQUE_KEY] or item[I_KEY] or "")
    local done = unique == "done" and admit.done_by(item, mark)
    if done then return done, "already_done" end
    local reason = cooldowns and admit.cooldown_reason(cooldowns, mark)
    if reason then return item[I_ID], reason end
  end
  if most and book.count(COUNTS, "q:" .. task) - book.count(COUNTS, "w:" .. task) >= most then return item[I_ID], "queue_full" end
end

-- Add to `needs` the equal runs that `item` waits for: every holder of its unique key. A holder either runs, or was tried and
-- waits for its retry, else `item` would have joined it.
function admit.equals_of(item, needs)
  if not item[I_UNIQUE_KEY] then return needs end
  needs = needs or {}
  for _, run in ipairs(holds.holders(item[I_TASK], item[I_UNIQUE_KEY])) do needs[#needs + 1] = run.id end
  return needs
end

-- Cancel the equal runs of `item`: those that wait for a retry end, and those that run are asked to stop.
function admit.replace_holders(item)
  local note, gone = "replaced by " .. item[I_ID], {}
  for _, run in ipairs(holds.holders(item[I_TASK], item[I_UNIQUE_KEY])) do
    local lease = run.lease
    if run.state ~= "r" then
      gone[#gone + 1] = run
    elseif not lease[L_CANCEL] then
      lease[L_CANCEL], lease[L_PAUSE], run[NOTE] = true, false, note
      book.hput(LEASES, run.id, cmsgpack.pack(lease))
      book.save(run)
      touched[run.id] = true
      events.record_run("cancel_requested", run, "cancelled")
      policies.count_decision(run[TASK], run[KEY], "cancelled", 1, run.id)
    end
  end
  for _, run in ipairs(gone) do policies.count_decision(run[TASK], run[KEY], "cancelled", 1, run.id) end
  holds.end_waiting(gone, "cancelled", note)
end

-- The answer to a put whose submitter gave the id, if that id is taken.
function admit.known_id(item)
  local known = book.hget(IDS, item[I_ID])
  if not known and not book.get(item[I_ID]) then return end
  return known and known:sub(1, FINGERPRINT) == item[I_FINGERPRINT] and "joined" or "id_conflict"
end
