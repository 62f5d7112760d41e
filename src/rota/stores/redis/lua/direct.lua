-- with: clock book events policies holds hints audit
-- twin: rota/stores/ledger/direct.py
-- direct: change the orders of workers, and hint them; answers 0 for a worker that is unknown or had these orders, else 1.
local request = cmsgpack.unpack(ARGV[3])
local workers, seats, quiet, stop = request[1], request[2], request[3], request[4]
local answer, changed = { instant(now) }, {}

local function direct(worker)
  local text = call("HGET", ROOT .. "workers", worker)
  if not text then return 0 end
  local row = cmsgpack.unpack(text)
  local known = row[W_ORDERS] or { 0, false, false }
  local orders = { seats or known[1], known[2], known[3] or stop }
  if quiet ~= nil then orders[2] = quiet end
  if orders[1] == known[1] and orders[2] == known[2] and orders[3] == known[3] then return 0 end
  row[W_ORDERS] = orders
  call("HSET", ROOT .. "workers", worker, cmsgpack.pack(row))
  changed[#changed + 1] = worker
  return 1
end

for i, worker in ipairs(workers) do answer[i + 1] = direct(worker) end
if #changed > 0 then call("PUBLISH", ROOT .. "hints", cmsgpack.pack({ changed, {} })) end
audit.keep(ARGV[4], answer)
hints.conclude()
return answer
