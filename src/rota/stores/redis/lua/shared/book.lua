-- twin: rota/stores/book.py
-- The book: the runs, and the indexes over them. A script gathers its changes and writes them at its end, one call for
-- each key. Code that reads a key with gathered changes must write those before: book.write_set, book.write_hash.
--
-- A run is the string r:<id>: a letter for its state, a letter for its form, then its fields as MessagePack, one after the
-- other. States: q in a lane, k parked, w waits for its needs, p paused, r running; ended: s succeeded, f failed, c
-- cancelled.
--
-- The fields and their forms are in rota/stores/fields.py; scripts.py writes their places (SEQ, CREATED_AT, ... and L_* of
-- a lease) into the scripts. Form a has the fields that a run has at its put, up to BODY; each later form has more fields.
-- If the letter of the form is in upper case, the body is in b:<id>. A form that is not known here was written by a newer
-- version: its first fields are those that are known, and the bytes behind them (`unread`) are written back unchanged.
-- Fields start at 2, because cmsgpack.unpack_limit returns an offset first. The due time in the record is false if the run
-- was due at its put.
local book = {}

-- The most arguments of one call: unpack of Lua gives no more than 8,000 values.
local ARGUMENTS = 4000

local LEASES, LAPSE, EXPIRING, HEADS = ROOT .. "leases", ROOT .. "lapse", ROOT .. "expiring", ROOT .. "heads"
local UNIQUES, COUNTS, BUSY, BUCKETS = ROOT .. "uniques", ROOT .. "counts", ROOT .. "busy", ROOT .. "o"
local GROUPED = ROOT .. "grouped"
-- IDS has the fingerprints of runs whose submitters gave the ids; behind it the letter of the final state, once retention has
-- deleted the run. IDS_OVER has these deleted runs, scored by the time of their end.
local IDS, IDS_OVER, FINGERPRINT = ROOT .. "ids", ROOT .. "ids_over", 32
-- CALLBACKS has the runs that are put when a run ends: a list of { state, id, task, priority, tail, queue }.
local CALLBACKS = ROOT .. "callbacks"

-- Gathered changes; a value of false removes the member or field.
local sets, hashes, added = {}, {}, {} -- anew
local runs, changed, restated, lanes, share_lanes = {}, {}, {}, {}, {} -- anew
local arrival_names, arrival_dues, touched = {}, {}, {} -- anew
local form_fields = FORM_FIELDS
-- The id of the last run that this script has put into a lane.
local newcomer = nil -- anew

-- The first write, before any change: a server that refuses writes (a replica, a full disk) refuses this one.
call("SET", ROOT .. "clock", instant(now)) -- anew

function book.slot(changes, key)
  local found = changes[key]
  if not found then
    found = {}
    changes[key] = found
  end
  return found
end

function book.zput(key, member, score) book.slot(sets, key)[member] = score end
function book.hput(key, field, value) book.slot(hashes, key)[field] = value end

function book.send(command, key, words)
  for first = 1, #words, ARGUMENTS do
    call(command, key, unpack(words, first, math.min(#words, first + ARGUMENTS - 1)))
  end
end

-- Write the gathered changes of `key`. ZADD takes a score before its member, HSET a value behind its field.
function book.write_changes(gathered, key, drop, add, value_first)
  local changes = gathered[key]
  if not changes then return end
  gathered[key] = nil
  local adds, drops = {}, {}
  for name, value in pairs(changes) do
    if value then
      local at = #adds
      adds[at + 1], adds[at + 2] = name, value
      if value_first then adds[at + 1], adds[at + 2] = value, name end
    else
      drops[#drops + 1] = name
    end
  end
  book.send(drop, key, drops)
  book.send(add, key, adds)
end

function book.write_set(key) book.write_changes(sets, key, "ZREM", "ZADD", true) end
function book.write_hash(key) book.write_changes(hashes, key, "HDEL", "HSET", false) end

function book.hget(key, field)
  local gathered = hashes[key] and hashes[key][field]
  if gathered ~= nil then return gathered end
  return call("HGET", key, field)
end

-- COUNTS has the number of runs in each state by task. BUSY has the number of running runs by (task, key) and by the row of
-- each named limit, and of running suspects by worker. A count changes in the same script as the run or the lease, so every
-- count is exact.
function book.add(hash, field, number)
  local deltas = book.slot(added, hash)
  deltas[field] = (deltas[field] or 0) + number
end

function book.count(hash, field)
  return tonumber(call("HGET", hash, field) or 0) + (added[hash] and added[hash][field] or 0)
end

function book.write_counts()
  for hash, deltas in pairs(added) do
    for field, number in pairs(deltas) do
      if number ~= 0 and call("HINCRBY", hash, field, number) == 0 then call("HDEL", hash, field) end
    end
  end
  added = {}
end

-- The name of the lanes of a task in a queue: the task, and behind a NUL the queue if it is not the default one, and behind
-- another NUL the share, if the runs have one. An arrival of any queue has the queue "*". %z is NUL in a pattern.
function book.lane_name(task, queue, share)
  if share then return task .. "\0" .. (queue or "") .. "\0" .. share end
  return queue and task .. "\0" .. queue or task
end
function book.task_of(name) return name:match("^[^%z]*") end

function book.lane_of(run)
  return run[PRIORITY] .. (run[LOSSES] > 0 and "!:" or ":") .. book.lane_name(run[TASK], run[QUEUE], run[SHARE])
end

function book.place(seq) return string.format("%012d", seq) end

-- A run with a share is in the lane of its share and in the lane of all shares, whose name ends with the NUL before the
-- share. Only the latter is in HEADS; t:<lane of all shares> has the shares that have runs, in the order of their texts.
-- Suspects are in lanes of their own, which are no lanes of shares.
function book.share_of(run) return run[LOSSES] == 0 and run[SHARE] end
function book.all_shares(lane, share) return lane:sub(1, #lane - #share) end

function book.lane_add(lane, seq, due, share)
  book.zput(ROOT .. "q:" .. lane, book.place(seq), due)
  if share then
    share_lanes[lane] = share
    lane = book.all_shares(lane, share)
    book.zput(ROOT .. "q:" .. lane, book.place(seq), due)
  end
  local head = lanes[lane]
  if head == nil or (head and due < head) then lanes[lane] = due end -- if false, write_lanes looks for the head
end

function book.lane_drop(lane, seq, share)
  book.zput(ROOT .. "q:" .. lane, book.place(seq), false)
  if share then
    book.zput(ROOT .. "q:" .. book.all_shares(lane, share), book.place(seq), false)
  end
  book.look_at_lane(lane, share)
end

-- The first run of `lane` may have changed: write_lanes looks.
function book.look_at_lane(lane, share)
  if share then
    share_lanes[lane] = share
    lane = book.all_shares(lane, share)
  end
  lanes[lane] = false
end

-- Write the due time of the first run of each changed lane into HEADS: a claim reads only the lanes that have due runs.
function book.write_lanes()
  for lane, share in pairs(share_lanes) do
    book.write_set(ROOT .. "q:" .. lane)
    local texts = ROOT .. "t:" .. book.all_shares(lane, share)
    if call("EXISTS", ROOT .. "q:" .. lane) == 1 then call("ZADD", texts, 0, share) else call("ZREM", texts, share) end
  end
  share_lanes = {}
  for lane, head in pairs(lanes) do
    local key = ROOT .. "q:" .. lane
    book.write_set(key)
    if head then
      call("ZADD", HEADS, "LT", head, lane)
    else
      local first = call("ZRANGE", key, 0, 0, "WITHSCORES")
      if first[2] then call("ZADD", HEADS, first[2], lane) else call("ZREM", HEADS, lane) end
    end
  end
  lanes = {}
end

function book.parse(id, text, lease)
  if not text then
    runs[id] = false
    return false
  end
  local form = text:sub(2, 2)
  local known = form_fields[form]
  local count = known or ALL_FIELDS
  local run = { cmsgpack.unpack_limit(text, count, 2) }
  FILL_BLANKS
  if not known then run.newer, run.unread = form, run[1] > 0 and text:sub(run[1] + 1) or "" end
  run.id, run.state = id, text:sub(1, 1)
  run[DUE_AT] = run[DUE_AT] or run[CREATED_AT]
  run.apart = form < "a"
  if run.state == "r" then run.lease = cmsgpack.unpack(lease or call("HGET", LEASES, id)) end
  runs[id] = run
  return run
end

function book.get(id)
  local run = runs[id]
  if run == nil then run = book.parse(id, call("GET", ROOT .. "r:" .. id)) end
  return run
end

function book.is_queued(run)
  local state = run.state
  return state == "q" or state == "k" or state == "w"
end

-- Take `run` out of all indexes of its state; book.enter adds it to those of its new state.
function book.leave(run)
  local state, task = run.state, run[TASK]
  if state == "r" then
    book.hput(LEASES, run.id, false)
    book.zput(LAPSE, run.id, false)
    book.add(COUNTS, "r:" .. task, -1)
    if run[KEY] then book.add(BUSY, "k" .. pair(task, run[KEY]), -1) end
    if run[LOSSES] > 0 then book.add(BUSY, "s" .. run.lease[L_WORKER], -1) end
    for _, name in ipairs(run.lease[L_LIMITS] or {}) do book.add(BUSY, "l" .. name, -1) end
  elseif state == "p" then
    book.zput(ROOT .. "held:" .. task, run.id, false)
    book.add(COUNTS, "p:" .. task, -1)
  elseif book.is_queued(run) then
    book.add(COUNTS, "q:" .. task, -1)
    if run[EXPIRES_AT] then book.zput(EXPIRING, run.id, false) end
    if state == "q" then
      book.lane_drop(book.lane_of(run), run[SEQ], book.share_of(run))
    elseif state == "k" then
      book.zput(book.parked_key(book.lane_name(task, run[QUEUE]), run[KEY]), book.parked_place(run), false)
    else
      book.add(COUNTS, "w:" .. task, -1)
      book.zput(ROOT .. "held:" .. task, run.id, false)
    end
  end
end

function book.enter(run)
  local state, task = run.state, run[TASK]
  if state == "r" then
    book.hput(LEASES, run.id, cmsgpack.pack(run.lease))
    book.zput(LAPSE, run.id, run.lease[L_UNTIL])
    book.add(COUNTS, "r:" .. task, 1)
    if run[KEY] then book.add(BUSY, "k" .. pair(task, run[KEY]), 1) end
    if run[LOSSES] > 0 then book.add(BUSY, "s" .. run.lease[L_WORKER], 1) end
  elseif state == "p" then
    book.zput(ROOT .. "held:" .. task, run.id, 0)
    book.add(COUNTS, "p:" .. task, 1)
  elseif book.is_queued(run) then
    book.add(COUNTS, "q:" .. task, 1)
    if run[EXPIRES_AT] then book.zput(EXPIRING, run.id, run[EXPIRES_AT]) end
    if state == "q" then
      book.lane_add(book.lane_of(run), run[SEQ], run[DUE_AT], book.share_of(run))
    elseif state == "k" then
      local name = book.lane_name(task, run[QUEUE])
      book.zput(book.parked_key(name, run[KEY]), book.parked_place(run), 0)
      book.zput(ROOT .. "keys:" .. name, run[KEY], 0)
      if run[QUEUE] then call("SADD", ROOT .. "parks:" .. task, name) end
    else
      book.add(COUNTS, "w:" .. task, 1)
      book.zput(ROOT .. "held:" .. task, run.id, 0)
    end
  else
    book.zput(ROOT .. (state == "s" and "ended:" or "failed:") .. task, book.place(run[SEQ]), run[FINISHED_AT])
    book.zput(ROOT .. "histories", task, 0)
  end
end

function book.save(run) changed[run.id] = run end

-- Write the state of `run`, and leave its record as it is.
function book.restate(run)
  if not changed[run.id] then restated[run.id] = run end
end

-- Note that a run of the lanes `name` is due at `due`; if `name` is false, a schedule is due. hints.conclude wakes workers.
function book.arrive(name, due)
  arrival_names[#arrival_names + 1] = name
  arrival_dues[#arrival_dues + 1] = due
end

function book.write_runs()
  for id, run in pairs(changed) do
    CHOOSE_FORM
    if run.newer then form, last = run.newer, ALL_FIELDS + 1 end
    if run.apart then form = form:upper() end
    call("SET", ROOT .. "r:" .. id, run.state .. form .. cmsgpack.pack(unpack(run, SEQ, last)) .. (run.unread or ""))
    restated[id] = nil
  end
  for id, run in pairs(restated) do
    call("SETRANGE", ROOT .. "r:" .. id, 0, run.state)
  end
  changed, restated = {}, {}
end

function book.write_all()
  book.write_runs()
  book.write_lanes()
  for key in pairs(sets) do book.write_set(key) end
  for key in pairs(hashes) do book.write_hash(key) end
  book.write_counts()
end

-- The ids of `places`, which are members of lanes, by arrival number. Runs that arrived one after the other are in one
-- bucket, so a few buckets have most of them.
function book.ids_of(places)
  local wanted, found = {}, {}
  for _, member in ipairs(places) do
    local seq = tonumber(member)
    local bucket = math.floor(seq / BUCKET)
    local fields = book.slot(wanted, bucket)
    fields[#fields + 1] = seq
  end
  for bucket, fields in pairs(wanted) do
    local key = ROOT .. "o:" .. bucket
    book.write_hash(key)
    if #fields > 10 then
      local all, names = call("HGETALL", key), {}
      for i = 1, #all, 2 do names[tonumber(all[i])] = all[i + 1] end
      for _, seq in ipairs(fields) do found[seq] = names[seq] end
    else
      local some = call("HMGET", key, unpack(fields))
      for i, seq in ipairs(fields) do found[seq] = some[i] end
    end
  end
  return found
end

-- seldom

-- The set of the parked runs of a key in one queue; `name` is a lane_name.
function book.parked_key(name, key) return ROOT .. "parked:" .. pair(name, key) end

-- The member of a parked run in its parked_key. All scores there are 0, so the set is in the order of its members: the
-- highest priority first, then the earliest due time, then the first arrival.
function book.parked_place(run)
  return string.format("%03d%017.5f%012d", 500 - run[PRIORITY], run[DUE_AT], run[SEQ])
end

function book.load(ids)
  local missing, keys = {}, {}
  for _, id in ipairs(ids) do
    if runs[id] == nil and not missing[id] then
      missing[id] = true
      missing[#missing + 1] = id
      keys[#keys + 1] = ROOT .. "r:" .. id
    end
  end
  for first = 1, #missing, ARGUMENTS do
    local last = math.min(#missing, first + ARGUMENTS - 1)
    local texts = call("MGET", unpack(keys, first, last))
    local leases = call("HMGET", LEASES, unpack(missing, first, last))
    for i = first, last do
      book.parse(missing[i], texts[i - first + 1], leases[i - first + 1])
    end
  end
end

-- The body as it was submitted. Two runs with equal bodies are the same work.
function book.body_of(run)
  return run.apart and call("GET", ROOT .. "b:" .. run.id) or run[BODY]
end

function book.is_final(run)
  local state = run.state
  return state == "s" or state == "f" or state == "c"
end

-- The state of a queued run: w if it has needs, else k if it is parked, else q.
function book.queued_state(run, parked)
  return run[NEEDS] and "w" or (parked and "k" or "q")
end

function book.holders_of(task, unique)
  local text = book.hget(UNIQUES, pair(task, unique))
  return text and cmsgpack.unpack(text) or {}
end

function book.hold_unique(task, unique, ids)
  book.hput(UNIQUES, pair(task, unique), #ids > 0 and cmsgpack.pack(ids))
end

-- awaits:<need> is the set of the runs that wait for `need`: the end of a run, or a mark.
function book.wait_no_more(run)
  for _, need in ipairs(run[NEEDS] or {}) do call("SREM", ROOT .. "awaits:" .. need, run.id) end
end

-- End `run`: take it out of its indexes, drop its needs and release its unique key.
function book.finish(run, state, reason)
  book.leave(run)
  run.state, run[FINISHED_AT], run.lease = state, now, nil
  run[REASON] = reason
  book.enter(run)
  book.wait_no_more(run)
  if run[UNIQUE_KEY] then
    local left = {}
    for _, id in ipairs(book.holders_of(run[TASK], run[UNIQUE_KEY])) do
      if id ~= run.id then left[#left + 1] = id end
    end
    book.hold_unique(run[TASK], run[UNIQUE_KEY], left)
  end
  book.save(run)
end

function book.arrive_run(run) book.arrive(book.lane_name(run[TASK], run[QUEUE]), run[DUE_AT]) end
