-- The one step of every counter in Redis: admit up to n of n requests in a clock-aligned window.
--
-- KEYS[i]  a counter. ARGV[i]  its 11 bytes "<I2I4I4I1": n, limit, unit (seconds), sliding (1 weighs in the window before).
-- Returns one string, 18 bytes "<I4I4I5I5" for each key: admitted, remaining, reset (ms), start of the window (Unix seconds).
-- The value of a key is 18 bytes "<I5I4I4I4I1": start of its window, unit, admitted in it, admitted in the window before it,
-- sliding. Expiry only cleans up: it is set when a window begins and kept from then on. Nothing is written where nothing is
-- admitted, but for a clock that went back. All arithmetic is exact: every product stays below 2^53. The time is the store's, so that replicas whose clocks
-- differ agree.
--
-- A clock that goes back, of this server or of the one that took over, never makes a window longer. A value whose window is
-- the next one by the clock counts in this one, with what it knows of it, so that a small step at an edge lets nothing more
-- through. One that begins later still, or at no window's start, says nothing: whoever wrote it had another clock, or was not
-- this script. So a step costs at most what one window lets through, and refuses nobody for longer than one.

local time = redis.call("TIME")
local clock = time[1] * 1000 + math.floor(time[2] / 1000)
local call, floor, max, min = redis.call, math.floor, math.max, math.min
local pack, unpack = struct.pack, struct.unpack
local SLACK = 1000 -- ms that a key outlives its use: a clock that steps back less than that finds its window again

-- floor((a * b - less) / c) for a < 2^32, b < 2^36, c < 2^36 and a quotient below 2^53
local function share(a, b, less, c)
  local product = a * b
  if product < 9007199254740992 then
    return floor((product - less) / c)
  end
  local low = a % 65536
  local high = (a - low) / 65536 * b
  local whole = floor(high / c)
  return whole * 65536 + floor(((high - whole * c) * 65536 + low * b - less) / c)
end

-- ms until one more request passes, if none comes in between; limit > 0
local function wait(current, previous, left, limit, span)
  if current < limit then -- as soon as the weight of the window before has fallen to limit - current - 1
    return left - share(limit - current, span, 1, previous)
  end
  return left + span - share(limit, span, 1, current) -- in the next window, whose window before is this one
end

local answers = {}
for i = 1, #KEYS do
  local key = KEYS[i]
  local n, limit, unit, sliding = unpack("<I2I4I4I1", ARGV[i])
  local span = unit * 1000
  local start = floor(clock / span) * unit
  local current, previous, kept, went_back = 0, 0, false, false
  local value = redis.pcall("GET", key)
  if type(value) == "table" then -- a key of another type is no counter: it must not fail the others
    value = false
  end
  if value and #value == 18 then
    local begun, of, count, before, slid = unpack("<I5I4I4I4I1", value)
    if of == unit then
      if begun == start then
        current, previous = count, before
        kept = slid >= sliding -- a key that turned into a sliding one must live a window longer
      elseif begun + unit == start then
        previous = count
      elseif begun == start + unit then
        current, went_back = min(count + before, limit), true
      end
    end
  end
  local left = (start + unit) * 1000 - clock
  local room = limit - current
  if sliding == 1 then
    room = room - share(previous, left, 0, span)
  end
  local admitted = max(0, min(n, room))
  if admitted > 0 or went_back then -- else the next window would be what it was before the clock went back
    current = current + admitted
    value = pack("<I5I4I4I4I1", start, unit, current, previous, sliding)
    if kept then
      call("SET", key, value, "KEEPTTL")
    else
      call("SET", key, value, "PX", (start + unit + unit * sliding) * 1000 - clock + SLACK)
    end
  end
  local remaining = max(0, room - admitted)
  local reset = left
  if sliding == 1 and remaining == 0 and limit > 0 then
    reset = wait(current, previous, left, limit, span)
  end
  answers[i] = pack("<I4I4I5I5", admitted, remaining, reset, start)
end
return table.concat(answers)
