-- twin: rota/stores/ledger/gates.py
-- Gates: whether one more run of a limited or rated task may start, during one claim.
local gates = {}

-- The room of each named limit that this claim has looked at: how many more runs may start. The gates of its tasks share it.
local rooms = {} -- anew

local function room_of(name, number)
  if not rooms[name] then
    local row = policies.spec_of(name)
    rooms[name] = (row and row[S_TOTAL] or number) - book.count(BUSY, "l" .. name)
  end
  return name
end

function gates.gate_of(task)
  local spec = policies.spec_of(task)
  if not policies.is_gated(spec) then return false end
  local names, limits = {}, spec[S_LIMITS] or {}
  for i = 1, #limits, 2 do names[#names + 1] = room_of(limits[i], limits[i + 1]) end
  local paused = spec[S_PAUSED_KEYS] and {}
  for _, key in ipairs(spec[S_PAUSED_KEYS] or {}) do paused[key] = true end
  return {
    paused = paused,
    task = task, spec = spec, keys = {}, rates = {}, full = policies.full_at(task, ""),
    running = spec[S_TOTAL] and book.count(COUNTS, "r:" .. task) or 0, names = #names > 0 and names,
  }
end

function gates.is_shut(gate)
  local spec = gate.spec
  if spec[S_TOTAL] and gate.running >= spec[S_TOTAL] then return true end
  for _, name in ipairs(gate.names or {}) do
    if rooms[name] <= 0 then return true end
  end
  return spec[S_INTERVAL] and not spec[S_EACH] and policies.opens_at(spec, gate.full) > now
end

function gates.learn(gate, key)
  if gate.keys[key] then return end
  gate.keys[key] = gate.spec[S_PER_KEY] and book.count(BUSY, "k" .. pair(gate.task, key)) or 0
  gate.rates[key] = gate.spec[S_EACH] and policies.full_at(gate.task, key) or 0
end

function gates.is_saturated(gate, key)
  if gate.paused and gate.paused[key] then return true end
  return gate.spec[S_PER_KEY] and gate.keys[key] >= gate.spec[S_PER_KEY]
end

-- Return nil if a run with `key` may start, "shut" if no run of the task may, "park" if no run with `key` may.
function gates.try_run(gate, key)
  if gates.is_shut(gate) then return "shut" end
  local spec = gate.spec
  if not key or not (spec[S_PER_KEY] or spec[S_EACH] or gate.paused) then return end
  gates.learn(gate, key)
  if gates.is_saturated(gate, key) then return "park" end
  if spec[S_EACH] and policies.opens_at(spec, gate.rates[key]) > now then return "park" end
end

function gates.take(gate, key)
  local spec = gate.spec
  gate.running = gate.running + 1
  for _, name in ipairs(gate.names or {}) do rooms[name] = rooms[name] - 1 end
  if key and gate.keys[key] then gate.keys[key] = gate.keys[key] + 1 end
  if spec[S_INTERVAL] and not spec[S_EACH] then
    gate.full = math.max(gate.full, now) + spec[S_INTERVAL]
  elseif spec[S_EACH] and key then
    gate.rates[key] = math.max(gate.rates[key], now) + spec[S_INTERVAL]
  end
end

-- Write the rates that the gates have counted. If parked runs of a key wait only for its rate, OPENINGS gets the time at
-- which the rate opens.
function gates.keep_rates(gate_of_task)
  for task, gate in pairs(gate_of_task) do
    local name = ROOT .. "rate:" .. task
    if gate and gate.spec[S_INTERVAL] then
      if not gate.spec[S_EACH] and gate.full > 0 then book.zput(name, "", gate.full) end
      for key, full in pairs(gate.spec[S_EACH] and gate.rates or {}) do
        if full > 0 then
          book.zput(name, key, full)
          local waits_for_it = not gates.is_saturated(gate, key) and holds.has_parked(task, key)
          book.zput(OPENINGS, pair(task, key), waits_for_it and policies.opens_at(gate.spec, full))
        end
      end
      book.zput(ROOT .. "rated", task, 0)
    end
  end
end

function gates.unpair(name)
  local length, text = name:match("^(%d+):(.*)$")
  return text:sub(1, tonumber(length)), text:sub(tonumber(length) + 1)
end

-- Unpark runs of the keys whose rate has opened.
function gates.unpark_opened()
  for _, name in ipairs(call("ZRANGEBYSCORE", OPENINGS, "-inf", now, "LIMIT", 0, OPENED_AT_ONCE)) do
    call("ZREM", OPENINGS, name)
    local task, key = gates.unpair(name)
    local spec = policies.spec_of(task)
    if spec and spec[S_INTERVAL] then
      local spare = now - policies.opens_at(spec, policies.full_at(task, key))
      if spare >= 0 then holds.unpark(task, key, math.min(spec[S_BURST], 1 + math.floor(spare / spec[S_INTERVAL]))) end
    end
  end
end
