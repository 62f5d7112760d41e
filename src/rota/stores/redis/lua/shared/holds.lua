-- twin: rota/stores/ledger/holds.py
-- Holds: a queued run is in a lane if and only if nothing holds it. Code that takes away a running or due run of a
-- saturated key, or moves it to later, must unpark the best parked run of that key. One unparked run too many does no harm:
-- the next claim parks it again. One too few would stay parked for ever.
local holds = {}

-- Expire the runs that are too late to start, a bounded number; return their ids.
function holds.expire_due()
  book.write_set(EXPIRING)
  local ids = call("ZRANGEBYSCORE", EXPIRING, "-inf", now, "LIMIT", 0, EXPIRED_AT_ONCE)
  local late, found = {}, {}
  if #ids == 0 then return found end
  book.load(ids)
  for _, id in ipairs(ids) do
    if runs[id] and holds.is_late(runs[id]) then
      late[#late + 1], found[#found + 1] = runs[id], id
    else
      book.zput(EXPIRING, id, false)
    end
  end
  holds.expire(late)
  return found
end

-- seldom

-- The lane names of `task` that may have parked runs: one for each queue. parks:<task> has those of the other queues.
function holds.parked_names(task)
  local names = { task }
  for _, name in ipairs(call("SMEMBERS", ROOT .. "parks:" .. task)) do
    book.write_set(ROOT .. "keys:" .. name)
    if call("EXISTS", ROOT .. "keys:" .. name) == 1 then
      names[#names + 1] = name
    else
      call("SREM", ROOT .. "parks:" .. task, name)
    end
  end
  return names
end

-- The place of the parked run of this key that starts next in the lanes `name`; nil if none is parked.
function holds.best_parked(name, key)
  local parked = book.parked_key(name, key)
  book.write_set(parked)
  local first = call("ZRANGE", parked, 0, 0)[1]
  return first and first:sub(-12)
end

-- Whether a run of this key is parked, in any queue.
function holds.has_parked(task, key)
  for _, name in ipairs(holds.parked_names(task)) do
    if holds.best_parked(name, key) then return true end
  end
  return false
end

function holds.unpark_lane(name, key, most)
  for _ = 1, most do
    local found = holds.best_parked(name, key)
    if not found then
      book.zput(ROOT .. "keys:" .. name, key, false)
      return
    end
    local run = book.get(book.ids_of({ found })[tonumber(found)])
    book.leave(run)
    run.state = "q"
    book.enter(run)
    book.restate(run)
    book.arrive_run(run)
  end
end

-- Unpark the best runs of a key, `most` in each queue: a queue may have no worker.
function holds.unpark(task, key, most)
  for _, name in ipairs(holds.parked_names(task)) do holds.unpark_lane(name, key, most) end
end

-- `run` of a gated task is no longer running or due; `state` and `due` are those before the change. Unpark a run of its key,
-- and wake a worker.
function holds.freed(run, state, due)
  local spec = policies.spec_of(run[TASK])
  if not policies.is_gated(spec) or not (state == "r" or (state == "q" and due <= now)) then return end
  -- The end of a running run gives no token of a rate back: it opens only a limit per key.
  if run[KEY] and (spec[S_PER_KEY] or state ~= "r") then holds.unpark(run[TASK], run[KEY], 1) end
  book.arrive(book.lane_name(run[TASK], "*"), now)
end

-- A lease that counted against these named limits has ended: wake a worker for each other task that shares one of them and has
-- runs that wait. `limited:<row>` has the tasks that were ever declared with the limit.
function holds.freed_by(names, besides)
  for _, name in ipairs(names) do
    for _, task in ipairs(call("SMEMBERS", ROOT .. "limited:" .. name)) do
      local waiting = book.count(COUNTS, "q:" .. task) - book.count(COUNTS, "w:" .. task)
      if task ~= besides and waiting > 0 then book.arrive(book.lane_name(task, "*"), now) end
    end
  end
end

-- After a change of its limits, all parked runs of `task` are unparked, a bounded number in one script. LOOSE has the tasks
-- that have more of them; each claim goes on with these.
local LOOSE = ROOT .. "loose"

function holds.unpark_all(task)
  local left = LOOSENED_AT_ONCE
  for _, name in ipairs(holds.parked_names(task)) do
    book.write_set(ROOT .. "keys:" .. name)
    for _, key in ipairs(call("ZRANGE", ROOT .. "keys:" .. name, 0, LOOSENED_AT_ONCE)) do
      local parked = call("ZCARD", book.parked_key(name, key))
      holds.unpark_lane(name, key, math.min(parked + 1, left))
      left = left - parked - 1
      if left <= 0 then
        call("SADD", LOOSE, task)
        return
      end
    end
  end
  call("SREM", LOOSE, task)
end

-- The waiting runs of `task` may start now: wake an idle worker for each, up to a bound.
function holds.announce(task)
  local ready = book.count(COUNTS, "q:" .. task) - book.count(COUNTS, "w:" .. task)
  for _ = 1, math.min(ANNOUNCED_AT_ONCE, ready) do book.arrive(book.lane_name(task, "*"), now) end
end

-- Whether `run` waits for the end of the run `id`. A run does not yield to a run that waits for its end.
function holds.is_behind(run, id)
  for _, need in ipairs(run[NEEDS] or {}) do
    if need == id then return true end
  end
  return false
end

-- The expiry of `run`, which was due at `before`: as long after the new due time as it was after the old one.
function holds.moved_expiry(run, before)
  if not run[EXPIRES_AT] or run[DUE_AT] == before then return run[EXPIRES_AT] end
  return after(run[DUE_AT], run[EXPIRES_AT] - before)
end

-- When `run`, which waited for another run of its key, may start: after all cooldowns that the mark of its key starts.
function holds.cooled_down_at(run)
  local due, mark = run[DUE_AT], policies.mark_of(run[TASK], run[UNIQUE_KEY] or run[KEY] or "")
  for _, rule in ipairs(mark[M_FINISHED_AT] and run[COOLDOWNS] or {}) do
    if mark[M_FAILURES] >= rule[1] then due = math.max(due, mark[M_FINISHED_AT] + rule[2]) end
  end
  return after(due, 0)
end

-- Whether a need is not met yet. A need is the name of a mark, or the id of a run whose end is awaited; such a run is
-- marked as awaited.
function holds.is_to_come(need)
  local space = need:find(" ", 1, true)
  if space then
    local mark = policies.mark_of(need:sub(2, space - 1), need:sub(space + 1))
    return not mark[need:sub(1, 1) == "*" and M_FINISHED_AT or M_SUCCEEDED_AT]
  end
  local run = book.get(need)
  if not run or book.is_final(run) then return false end
  if not run[AWAITED] then
    run[AWAITED] = true
    book.save(run)
  end
  return true
end

function holds.unmet(id, needs)
  local left = {}
  for _, need in ipairs(needs) do
    if need ~= id and holds.is_to_come(need) then -- a run that waited for itself would never start
      left[#left + 1] = need
      call("SADD", ROOT .. "awaits:" .. need, id)
    end
  end
  return #left > 0 and left
end

-- A need "*" is met by any end, also by a cancel, which writes no mark. Some run waited for it: write a mark with an end, so
-- that no later run waits for the same need again.
function holds.remember_end(need)
  local space = need:find(" ", 1, true)
  local mark = policies.mark_of(need:sub(2, space - 1), need:sub(space + 1))
  if not mark[M_FINISHED_AT] then
    mark[M_FINISHED_AT] = now
    policies.put_mark(mark)
  end
end

-- The needs `met` are met: strike them from the runs that wait for them. A run without further needs may start.
function holds.meet_needs(met)
  local waiting, is_met = {}, {}
  for _, need in ipairs(met) do
    local name = ROOT .. "awaits:" .. need
    local some = call("SMEMBERS", name)
    if #some > 0 then
      if need:sub(1, 1) == "*" then holds.remember_end(need) end
      if #some > RELEASED_AT_ONCE then some = holds.release_later(name, need) end
      call("DEL", name)
    end
    for _, id in ipairs(some) do waiting[#waiting + 1] = id end
    is_met[need] = true
  end
  holds.strike(is_met, waiting)
end

-- Many runs wait for `need`: put them into a list, in the order of their ids, and return the first of them. RELEASES has the
-- lists, each with its need. A wait for the same need that begins later is another one.
local RELEASES = ROOT .. "releases"

function holds.release_later(name, need)
  local list = ROOT .. "met:" .. call("INCR", ROOT .. "met")
  call("SORT", name, "ALPHA", "STORE", list)
  call("RPUSH", RELEASES, cmsgpack.pack({ list, need }))
  call("SET", ROOT .. "releasing", 1)
  book.arrive(false, now) -- a worker that claims goes on, if no run of the first ones wakes one
  return call("LPOP", list, RELEASED_AT_ONCE)
end

-- Release some more runs whose needs are met: each claim and each sweep does. Return whether there are more.
function holds.release_more()
  if not releasing then return false end
  local first = call("LINDEX", RELEASES, 0)
  if first then
    local list, need = unpack(cmsgpack.unpack(first))
    holds.strike({ [need] = true }, call("LPOP", list, RELEASED_AT_ONCE) or {})
    if call("EXISTS", list) == 0 then call("LPOP", RELEASES) end
  end
  releasing = call("EXISTS", RELEASES) == 1
  if releasing then book.arrive(false, now) else call("DEL", ROOT .. "releasing") end
  return releasing
end

function holds.strike(is_met, waiting)
  if #waiting == 0 then return end
  table.sort(waiting)
  book.load(waiting)
  for _, id in ipairs(waiting) do
    local child = runs[id]
    if child and not book.is_final(child) and child[NEEDS] then
      local left = {}
      for _, need in ipairs(child[NEEDS]) do
        if not is_met[need] then left[#left + 1] = need end
      end
      book.leave(child)
      child[NEEDS] = #left > 0 and left
      if child[COOLDOWNS] and not child[NEEDS] then
        local before = child[DUE_AT]
        child[DUE_AT] = holds.cooled_down_at(child)
        child[EXPIRES_AT] = holds.moved_expiry(child, before)
      end
      if child.state == "w" then
        child.state = book.queued_state(child, false)
        if child.state == "q" then book.arrive_run(child) end
      end
      book.enter(child)
      book.save(child)
    end
  end
end

-- The needs that the end of `run` meets.
function holds.met_by(run)
  local met = { run[AWAITED] and run.id or nil }
  if run[WRITES_MARK] then
    local name = run[TASK] .. " " .. (run[UNIQUE_KEY] or run[KEY] or "")
    met[#met + 1] = "*" .. name
    if run.state == "s" then met[#met + 1] = "+" .. name end
  end
  return met
end

-- `run` has ended: meet the needs of the runs that wait for it. The mark of `run` must be written before, because it decides
-- when these runs are due (holds.cooled_down_at).
function holds.release(run)
  holds.meet_needs(holds.met_by(run))
  if run[AWAITED] then holds.put_callbacks(run) end
  if run.id:find(".", 1, true) then holds.count_in_fan(run.id, run.state) end
end

-- FANS has the fans by id: { total or false, allowed or false, ended, failed, created_at }.
local FANS = ROOT .. "fans"
local fans = {} -- anew

function holds.fan(id)
  if fans[id] == nil then
    local text = call("HGET", FANS, id)
    fans[id] = text and cmsgpack.unpack(text)
  end
  return fans[id]
end

function holds.put_fan(id, fan)
  fans[id] = fan
  book.hput(FANS, id, cmsgpack.pack(fan))
end

function holds.is_over(fan)
  return (fan[F_ALLOWED] and fan[F_FAILED] > fan[F_ALLOWED]) or (fan[F_TOTAL] and fan[F_ENDED] >= fan[F_TOTAL])
end

-- Count the end of a child of a fan: its id is that of the fan, a dot and its index. The last end that the gather waits for
-- lets the gather in.
function holds.count_in_fan(run, state)
  local id = run:match("^(.+)%.%d+$")
  local fan = id and holds.fan(id)
  if not fan then return end
  local over = holds.is_over(fan)
  fan[F_ENDED] = fan[F_ENDED] + 1
  if state ~= "s" then fan[F_FAILED] = fan[F_FAILED] + 1 end
  holds.put_fan(id, fan)
  holds.let_in(id, over, fan)
end

function holds.let_in(id, before, fan)
  if holds.is_over(fan) and not before then holds.meet_needs({ "#" .. id .. " all" }) end
end

-- Put the callbacks of `run` for its final state. Their ids derive from its id, so they are put once; they have no guards, so
-- that none is refused.
function holds.put_callbacks(run)
  local kept = book.hget(CALLBACKS, run.id)
  if not kept then return end
  book.hput(CALLBACKS, run.id, false)
  for _, callback in ipairs(cmsgpack.unpack(kept)) do
    local state, id, task, priority, tail, queue = unpack(callback)
    if state == run.state then
      local seq = call("INCRBY", ROOT .. "seq", 1)
      local text = cmsgpack.pack(seq, now, false, false) .. tail
      if call("SET", ROOT .. "r:" .. id, "qa" .. text, "NX") then
        runs[id] = nil
        events.record("queued", "runs", id, task, false, "q", "accepted")
        local bucket = math.floor(seq / BUCKET)
        book.hput(ROOT .. "o:" .. bucket, seq, id)
        book.zput(BUCKETS, bucket, bucket)
        if queue then
          local new = book.get(id)
          new[QUEUE] = queue
          book.save(new)
        end
        local name = book.lane_name(task, queue or nil)
        book.add(COUNTS, "q:" .. task, 1)
        book.lane_add(priority .. ":" .. name, seq, now)
        book.arrive(name, now)
      end
    end
  end
end

-- Cancel the runs `waiting`, which are not running.
function holds.end_waiting(waiting, reason, note)
  local states = {}
  for i, run in ipairs(waiting) do
    states[i], run[NOTE] = run.state, note
    book.finish(run, "c", reason)
    events.record_run("cancelled", run)
    touched[run.id] = true
  end
  for i, run in ipairs(waiting) do -- after all of them have ended: else this would unpark one of them
    holds.release(run)
    holds.freed(run, states[i], run[DUE_AT])
  end
end

-- Cancel the waiting runs of `group`, except the runs `besides` and the runs with a unique key in `keep`; both are tables by
-- name. Count a decision for each, and return them.
function holds.cancel_group(group, reason, note, besides, keep)
  local name = ROOT .. "g:" .. group
  book.write_set(name)
  return holds.cancel_all(call("ZRANGE", name, 0, -1), reason, note, besides, keep)
end

function holds.cancel_all(ids, reason, note, besides, keep)
  local gone = {}
  book.load(ids)
  for _, id in ipairs(ids) do
    local run = runs[id]
    local waits = run and (run.state == "p" or book.is_queued(run))
    if waits and not besides[id] and not (run[UNIQUE_KEY] and keep[run[UNIQUE_KEY]]) then gone[#gone + 1] = run end
  end
  for _, run in ipairs(gone) do policies.count_decision(run[TASK], run[KEY], reason, 1, run.id, note) end
  holds.end_waiting(gone, reason, note)
  return gone
end

function holds.is_late(run)
  return book.is_queued(run) and run[EXPIRES_AT] and run[EXPIRES_AT] <= now
end

function holds.expire(late)
  local before = {}
  for i, run in ipairs(late) do
    before[i] = run.state
    book.finish(run, "c", "expired")
    events.record_run("cancelled", run)
    touched[run.id] = true
    policies.count_decision(run[TASK], run[KEY], "expired", 1, run.id)
    holds.release(run)
  end
  for i, run in ipairs(late) do -- after all of them have ended: else this would unpark one of them
    holds.freed(run, before[i], run[DUE_AT])
  end
end

-- The unfinished runs with this unique key. Runs that are too late to start are expired here: a run that joined one of them
-- would never start.
function holds.holders(task, unique)
  local late, found = {}, {}
  local ids = book.holders_of(task, unique)
  book.load(ids)
  for _, id in ipairs(ids) do
    local run = runs[id]
    if run and not book.is_final(run) then
      if holds.is_late(run) then late[#late + 1] = run else found[#found + 1] = run end
    end
  end
  if #late > 0 then holds.expire(late) end
  return found
end
