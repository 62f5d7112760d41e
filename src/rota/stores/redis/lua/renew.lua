-- with: clock book events policies holds hints
-- twin: rota/stores/ledger/renew.py
-- renew: extend leases that the worker still has, also lapsed ones, and store the progress and checkpoints of their runs.
local N_RUN, N_FENCE, N_WORKER, N_NOTED, N_PROGRESS, N_SAVED = 1, 2, 3, 4, 5, 6
local request = cmsgpack.unpack(ARGV[3])
local deadline = after(now, request[1])
local answer = { instant(now) }

local function renew(item)
  local text = book.hget(LEASES, item[N_RUN])
  local lease = text and cmsgpack.unpack(text)
  if not lease or lease[L_FENCE] ~= item[N_FENCE] or lease[L_WORKER] ~= item[N_WORKER] then return "lost" end
  lease[L_UNTIL] = deadline
  book.hput(LEASES, item[N_RUN], cmsgpack.pack(lease))
  book.zput(LAPSE, item[N_RUN], deadline)
  if item[N_NOTED] then
    local run = book.get(item[N_RUN])
    local progress, saved = item[N_PROGRESS] or run[PROGRESS], item[N_SAVED] or run[SAVED]
    if progress ~= run[PROGRESS] or saved ~= run[SAVED] then
      run[PROGRESS], run[SAVED] = progress, saved
      book.save(run)
      touched[run.id] = true
      events.record_run("progress", run, nil, lease)
    end
  end
  return lease[L_CANCEL] and "cancel" or (lease[L_PAUSE] and "pause" or "ok")
end

for i, item in ipairs(request[2]) do answer[i + 1] = renew(item) end
hints.conclude()
return answer
