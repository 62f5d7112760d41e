-- twin: rota/stores/ledger/shares.py
-- Turns: the waiting runs of a task that have a share start by weighted round robin over their shares. A claim reads the lane
-- of all shares of a task, queue and priority (`all`) like any lane; its runs come from the lanes of the shares. TURNS has, by
-- the name of the lane of all shares, whose turn it is and how many runs that share has got in this turn.
local shares = {}

local TURNS = ROOT .. "turns"
local T_SHARE, T_GOT = 1, 2

function shares.weight(all, share)
  local spec = policies.spec_of(all.task)
  return spec and spec[S_WEIGHTS] and spec[S_WEIGHTS][share] or 1
end

function shares.open(all)
  local text = call("HGET", TURNS, all.name)
  all.turn = text and cmsgpack.unpack(text) or { "", 0 }
  all.ring, all.place = {}, 1
  all.first, all.after, all.wrapped = all.turn[T_SHARE], all.turn[T_SHARE], all.turn[T_SHARE] == ""
  all.unfinished = all.first ~= "" and all.turn[T_GOT] < shares.weight(all, all.first)
  all.finished = all.first ~= "" and not all.unfinished
end

-- The next share that has runs: first the one whose turn it is, if its turn is not over, then those behind it, in a ring.
function shares.next_share(all)
  if all.unfinished then
    all.unfinished = false
    return all.first
  end
  local texts = ROOT .. "t:" .. all.name
  local share = all.after and call("ZRANGEBYLEX", texts, "(" .. all.after, "+", "LIMIT", 0, 1)[1]
  if not share and not all.wrapped then
    all.wrapped, share = true, call("ZRANGEBYLEX", texts, "-", "(" .. all.first, "LIMIT", 0, 1)[1]
  elseif share and all.wrapped and all.first ~= "" and share >= all.first then
    share = nil
  end
  all.after = share
  if not share and all.finished then
    all.finished = false
    return all.first
  end
  return share
end

function shares.lane_of(all, share)
  return { name = all.name .. share, suspect = false, served = all.served, task = all.task, at = 0, gate = all.gate, all = all,
    share = share }
end

-- The next run of all shares; `peek` returns the first run of a lane that was not considered yet. Nil if no run is due. A share
-- is looked for when the shares before it have had their turn: a claim reads no more shares than it fills seats.
function shares.next_run(all, peek)
  if not all.turn then shares.open(all) end
  local ring = all.ring
  while true do
    if not ring[all.place] then
      local share = shares.next_share(all)
      if share then
        ring[all.place] = shares.lane_of(all, share)
      elseif #ring > 0 then
        all.place = 1
      else
        return
      end
    end
    local run = peek(ring[all.place])
    if run then return run end
    table.remove(ring, all.place)
  end
end

-- The claim takes a run of `lane`: count it for its share.
function shares.count_taken(lane)
  local all = lane.all
  if not all then return end
  local turn, weight = all.turn, shares.weight(all, lane.share)
  local more = turn[T_SHARE] == lane.share and turn[T_GOT] < weight
  all.turn = { lane.share, more and turn[T_GOT] + 1 or 1 }
  if all.turn[T_GOT] >= weight then all.place = all.place + 1 end
  book.hput(TURNS, all.name, cmsgpack.pack(all.turn))
end
