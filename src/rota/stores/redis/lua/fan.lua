-- with: clock book events policies holds hints
-- twin: rota/stores/ledger/fans.py
-- fan: make a fan, or say how many children it has; the first total stays. Answers whether that changed anything.
local request = cmsgpack.unpack(ARGV[3])

local function put_fan(id, total, allowed)
  local known = holds.fan(id)
  if known and (known[F_TOTAL] or not total) then return 0 end
  local over = known and holds.is_over(known)
  local fan = known or { false, allowed, 0, 0, now }
  fan[F_TOTAL] = total
  holds.put_fan(id, fan)
  holds.let_in(id, over, fan)
  return 1
end

local changed = put_fan(request[1], request[2], request[3])
hints.conclude()
return { instant(now), changed }
