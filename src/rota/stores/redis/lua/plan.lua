-- with: clock book events policies holds hints admit audit
-- twin: rota/stores/ledger/admit.py
-- plan: carry out a part of the plan that is under way, in a script of some milliseconds: put some of its runs, then look at some
-- of the runs of its group, and cancel those that wait and are not in the plan. A plan gets under way by this verb once all of it
-- is staged. From then on no other verb does anything: it answers `planning` (clock.lua), and its caller calls this verb until
-- the plan is carried out. So nobody sees a part of it.
-- ARGV[3] is the token of the caller's plan; empty if the caller helps. Answers the time, and 1 while there is more to do, 0 at the
-- end, -1 if the plan is not staged. With ARGV[4], the name of a list of decisions: those, or nothing; "forget" drops the plan.
local P_GROUP, P_NOTE, P_PARTS, P_AUDIT = 1, 2, 3, 4
local N_TOKEN, N_PART, N_PLACE, N_CHANGED, N_LISTS = 1, 2, 3, 4, 5
local own, wanted = ARGV[3], ARGV[4]

local function name_of(token) return ROOT .. "plan:" .. token end

-- planned:<token> has "r" with the id of each run of the plan, and "u" with each unique key that it keeps.
local function note(token, words) book.send("SADD", ROOT .. "planned:" .. token, words) end

local function put_part(state)
  local token, number = state[N_TOKEN], state[N_PART]
  local items, kept = unpack(cmsgpack.unpack(call("HGET", name_of(token), number)))
  local decisions, words = {}, {}
  admit.reserve(#items)
  local ids, reasons = admit.admit_all(items)
  for i, id in ipairs(ids) do
    words[#words + 1] = "r" .. id
    if reasons[i] == "accepted" then
      state[N_CHANGED] = state[N_CHANGED] + 1
    else
      decisions[#decisions + 1] = { i - 1, id, reasons[i] }
    end
  end
  for _, unique in ipairs(kept) do words[#words + 1] = "u" .. unique end
  if #words > 0 then note(token, words) end
  call("HSET", name_of(token), "d" .. number, cmsgpack.pack(decisions))
  state[N_PART] = number + 1
end

local function is_planned(token, run)
  local planned = ROOT .. "planned:" .. token
  if call("SISMEMBER", planned, "r" .. run.id) == 1 then return true end
  return run[UNIQUE_KEY] and call("SISMEMBER", planned, "u" .. run[UNIQUE_KEY]) == 1
end

-- Cancel those of the next runs of the group that are not in the plan. Return whether these were the last.
local function cancel_part(state, head)
  local token, first, besides, decisions = state[N_TOKEN], state[N_PLACE], {}, {}
  local ids = call("ZRANGE", ROOT .. "g:" .. head[P_GROUP], first, first + PLANNED_AT_ONCE - 1)
  book.load(ids)
  for _, id in ipairs(ids) do
    if runs[id] and is_planned(token, runs[id]) then besides[id] = true end
  end
  for i, run in ipairs(holds.cancel_all(ids, "cancelled", head[P_NOTE], besides, {})) do
    decisions[i] = { 0, run.id, "cancelled" }
  end
  if #decisions > 0 then
    call("HSET", name_of(token), "c" .. state[N_LISTS], cmsgpack.pack(decisions))
    state[N_LISTS], state[N_CHANGED] = state[N_LISTS] + 1, state[N_CHANGED] + #decisions
  end
  state[N_PLACE] = first + #ids
  return #ids < PLANNED_AT_ONCE
end

-- Do the next part; return whether it was the last.
local function do_part(state, head)
  if state[N_PART] < head[P_PARTS] then return put_part(state) end
  if not cancel_part(state, head) then return false end
  if head[P_AUDIT] then audit.keep(head[P_AUDIT], { instant(now), state[N_CHANGED] }) end
  return true
end

-- Do the next part, and write what it has gathered. A part that fails ends the plan: else no verb of this namespace would ever do
-- anything again.
local function go_on()
  local state = cmsgpack.unpack(planning)
  local name = name_of(state[N_TOKEN])
  local done, over = pcall(function()
    local last = do_part(state, cmsgpack.unpack(call("HGET", name, "head")))
    hints.conclude()
    return last
  end)
  planning = done and not over and cmsgpack.pack(state)
  if planning then
    call("SET", ROOT .. "planning", planning)
  else
    call("UNLINK", ROOT .. "planning", ROOT .. "planned:" .. state[N_TOKEN])
    call("HSET", name, "end", done and "" or tostring(over))
  end
end

if wanted == "forget" then
  call("UNLINK", name_of(own), ROOT .. "planned:" .. own)
  call("ZREM", ROOT .. "plans", own)
  return { instant(now), 0 }
end
if wanted then return { instant(now), call("HGET", name_of(own), wanted) } end
local ended = own ~= "" and call("HGET", name_of(own), "end")
if ended then return { instant(now), 0, ended } end
if not planning and own ~= "" then
  if not call("HGET", name_of(own), "head") then return { instant(now), -1 } end
  planning = cmsgpack.pack({ own, 0, 0, 0, 0 })
end
if planning then go_on() end
ended = own ~= "" and call("HGET", name_of(own), "end")
return { instant(now), (ended or (own == "" and not planning)) and 0 or 1, ended or "" }
