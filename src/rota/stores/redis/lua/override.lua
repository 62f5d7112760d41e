-- with: clock book events policies holds hints audit
-- twin: rota/stores/ledger/override.py
-- override: store what an operator says of a task, if its version is the one after the stored one.
local request = cmsgpack.unpack(ARGV[3])
local task, name, row, missing = request[1], request[2], request[3], request[4]

local function override()
  local known = policies.declared(name)
  if known and known[S_TEXT] == row[S_TEXT] then return "unchanged" end
  if row[S_OVERRIDES][1] ~= (known and known[S_OVERRIDES] and known[S_OVERRIDES][1] or 0) + 1 then return "conflict" end
  if not policies.declared(task) then policies.put_spec(task, missing) end -- also a task that no app has declared
  local before = policies.spec_of(task)
  policies.put_spec(name, row, task)
  local after = policies.spec_of(task)
  local regated = before[S_LIMIT] ~= after[S_LIMIT] or before[S_RATE] ~= after[S_RATE]
  if before[S_RATE] ~= after[S_RATE] then policies.forget_rates(task) end
  if regated then holds.unpark_all(task) end
  if regated or (after[S_ENABLED] and not before[S_ENABLED]) then holds.announce(task) end
  events.record("declared", "tasks", task, task, false, false, "changed")
  return "changed"
end

local answer = { instant(now), override() }
audit.keep(ARGV[4], answer)
hints.conclude()
return answer
