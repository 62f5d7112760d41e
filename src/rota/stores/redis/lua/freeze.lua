-- with: clock book events policies holds hints audit
-- twin: rota/stores/ledger/freeze.py
-- freeze: keep every run from starting; without a freeze, let them start again and wake idle workers.
local request = cmsgpack.unpack(ARGV[3])
local wanted, until_, note, by = request[1], request[2], request[3], request[4]

local function set_freeze()
  local known = policies.frozen()
  if wanted then
    if known and known[2] == until_ and known[3] == note and known[4] == by then return 0 end
    call("HSET", ROOT .. "freeze", "", cmsgpack.pack({ now, until_, note, by }))
    events.record("frozen", "tasks", "", "")
    return 1
  end
  call("DEL", ROOT .. "freeze")
  if known then events.record("thawed", "tasks", "", "") end
  for _, name in ipairs(known and call("HKEYS", COUNTS) or {}) do
    if name:sub(1, 2) == "q:" then holds.announce(name:sub(3)) end
  end
  return known and 1 or 0
end

local changed = set_freeze()
local answer = { instant(now), changed }
audit.keep(ARGV[4], answer)
hints.conclude()
return answer
