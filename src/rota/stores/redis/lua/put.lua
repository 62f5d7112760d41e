-- with: clock book events policies holds hints admit audit
-- twin: rota/stores/ledger/admit.py
-- put: admit runs. Answers the time, then place, run and reason of each run that was not accepted. With a plan, it cancels
-- the other waiting runs of the plan's group, and answers these too; "long" if the group has so many runs that this has to be
-- done in parts (plan.lua).
local P_GROUP, P_KEEP, P_NOTE = 1, 2, 3

-- Put a lone run without guards, needs, group, queue, share and expiry, if its task has no limit per key, nobody reads events
-- and no worker is idle: its commands alone, without the tables that gather changes. They are those of admit.bring_in. Return
-- the answer; false if the run has to go the usual way. Only the clock has begun: the other shared files keep the tables of the
-- call before.
local function put_plain(packed)
  local list, fields = packed:byte(1, 2) -- MessagePack: a list of one item, and how many fields the item has
  if list ~= 0x91 or fields < 0x90 + I_TAIL or fields > 0x90 + I_KEY or recording then return false end
  local id, task, priority, tail, delay, at, expires_after, expires_at, key = unpack(cmsgpack.unpack(packed)[1], 1, I_KEY)
  if expires_after or expires_at or call("EXISTS", IDLE) == 1 then return false end
  local texts = call("HMGET", SPECS, task, override_row .. task)
  local spec = texts[1] and read_spec(texts[1])
  if texts[2] or (spec and (not spec[S_ENABLED] or spec[S_PER_KEY])) then return false end
  call("SET", ROOT .. "clock", now_text) -- the first write, as in book.lua
  local seq, due = call("INCRBY", ROOT .. "seq", 1), at or (delay and after(now, delay)) or now
  call("HINCRBY", ROOT .. "totals", pair("decided", pair(task, "accepted")), 1)
  local text = cmsgpack.pack(seq, now, due ~= now and due, false) .. tail
  if not call("SET", ROOT .. "r:" .. id, "qa" .. text, "NX") then return { now_text } end
  local bucket, lane, score = math.floor(seq / BUCKET), priority .. ":" .. task, due == now and now_text or due
  local ids, hash = ROOT .. "o:" .. bucket, key and key_hash(key) or NO_KEY
  call("HSET", ids, seq, id)
  if call("HLEN", ids) == 1 then call("ZADD", BUCKETS, bucket, bucket) end
  call("SETRANGE", ROOT .. "kh:" .. math.floor(seq / KEY_BLOCK), seq % KEY_BLOCK * 2, hash)
  call("ZADD", ROOT .. "q:" .. lane, score, book.place(seq))
  call("ZADD", HEADS, "LT", score, lane)
  call("HINCRBY", COUNTS, "q:" .. task, 1)
  return { now_text }
end

local plain = #ARGV == 3 and put_plain(ARGV[3]) -- ahead
if plain then return plain end -- ahead

local items, answer = cmsgpack.unpack(ARGV[3]), { instant(now) }
local plan = ARGV[4] and ARGV[4] ~= "" and cmsgpack.unpack(ARGV[4])
if plan and call("ZCARD", ROOT .. "g:" .. plan[P_GROUP]) > PLANNED_AT_ONCE then return { answer[1], "long" } end
admit.reserve(#items)

local function add_decision(place, run, reason)
  answer[#answer + 1] = place
  answer[#answer + 1] = run
  answer[#answer + 1] = reason
end

local ids, reasons = admit.admit_all(items)
local changed = 0
for i, id in ipairs(ids) do
  if reasons[i] == "accepted" then changed = changed + 1 else add_decision(i - 1, id, reasons[i]) end
end
if plan then
  local planned, keep = {}, {}
  for _, id in ipairs(ids) do planned[id] = true end
  for _, unique in ipairs(plan[P_KEEP]) do keep[unique] = true end
  local gone = holds.cancel_group(plan[P_GROUP], "cancelled", plan[P_NOTE], planned, keep)
  for i, run in ipairs(gone) do add_decision(#items + i - 1, run.id, "cancelled") end
  changed = changed + #gone
end
audit.keep(ARGV[5], { answer[1], changed })
hints.conclude()
return answer
