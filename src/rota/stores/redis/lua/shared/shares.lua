-- twin: rota/stores/ledger/shares.py
-- Turns: the waiting runs of a task that have a share start by weighted round robin over their shares. The lanes of the shares
-- of a task, queue and priority are the members of one group, which a claim reads like a lane. TURNS has, by the name of the
-- group, whose turn it is and how many runs that share has got in this turn.
local shares = {}

local TURNS = ROOT .. "turns"
local T_SHARE, T_GOT = 1, 2

-- Add `lane` to its group among `groups`. Return the group if it is new. Lanes come in the order of their heads.
function shares.join_group(groups, lane, share)
  local name = lane.name:sub(1, #lane.name - #share - 1)
  local group, fresh = groups[name], nil
  if not group then
    fresh = { name = name, head = lane.head, suspect = false, served = lane.served, task = lane.task, members = {}, texts = {} }
    group, groups[name] = fresh, fresh
  end
  group.members[share] = lane
  group.texts[#group.texts + 1] = share
  lane.group, lane.share = group, share
  return fresh
end

function shares.weight(group, share)
  local spec = policies.spec_of(group.task)
  return spec and spec[S_WEIGHTS] and spec[S_WEIGHTS][share] or 1
end

function shares.open(group)
  local text = call("HGET", TURNS, group.name)
  group.turn = text and cmsgpack.unpack(text) or { "", 0 }
  table.sort(group.texts)
  for _, lane in pairs(group.members) do lane.gate = group.gate end
end

-- The next run of `group`; `peek` returns the first run of a lane that was not considered yet. Nil if no run is due.
function shares.next_run(group, peek)
  if not group.turn then shares.open(group) end
  local turn, texts = group.turn, group.texts
  local mine = group.members[turn[T_SHARE]]
  if mine and turn[T_GOT] < shares.weight(group, turn[T_SHARE]) then
    local run = peek(mine)
    if run then return run end
  end
  local from = 1
  while texts[from] and texts[from] <= turn[T_SHARE] do from = from + 1 end
  local at = from
  for _ = 1, #texts do
    if not texts[at] then at = 1 end
    local run = texts[at] and peek(group.members[texts[at]])
    if run then return run end
    at = at + 1
  end
end

-- The claim takes a run of `lane`: count it for its share.
function shares.count_taken(lane)
  local group = lane.group
  if not group then return end
  local turn = group.turn
  if turn[T_SHARE] == lane.share and turn[T_GOT] < shares.weight(group, lane.share) then
    turn[T_GOT] = turn[T_GOT] + 1
  else
    group.turn = { lane.share, 1 }
  end
  book.hput(TURNS, group.name, cmsgpack.pack(group.turn))
end
