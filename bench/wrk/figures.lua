-- figures.lua: options and the summary that all scripts of this folder share.
--
-- In: arguments after `--` of the wrk command, each `name=value`. Out: one line of figures after the run, `name=value` too.
-- Each thread of wrk has its own Lua state, so a script counts answers in globals and `done` adds up the threads.
-- Must never: allocate for each request more than the script itself needs.

local figures = {}
local threads = {}

-- Classes of status codes, and the codes that a gateway gives itself.
local COUNTERS = { "n2xx", "n3xx", "n4xx", "n429", "n5xx" }

-- wrk calls scripts unprotected: an error would abort it.
local function refuse(text)
   io.stderr:write(text, "\n")
   os.exit(2)
end

-- Return the options: `defaults` with the values of `arguments`. An unknown name ends the run.
function figures.options(arguments, defaults)
   local found = {}
   for name, value in pairs(defaults) do found[name] = value end
   for _, argument in ipairs(arguments) do
      local name, value = argument:match("^([%w_]+)=(.*)$")
      if name == nil or defaults[name] == nil then
         refuse("unknown option: " .. argument)
      end
      if type(defaults[name]) == "number" then
         found[name] = tonumber(value) or refuse(name .. " is a number: " .. value)
      else
         found[name] = value
      end
   end
   return found
end

function figures.setup(thread)
   table.insert(threads, thread)
   thread:set("seed", #threads)
end

-- Count the statuses of answers of this thread. Without this, wrk does not parse answers into Lua, which costs time of its own.
function figures.count_statuses()
   for _, name in ipairs(COUNTERS) do _G[name] = 0 end
   response = function(status)
      if status == 429 then n429 = n429 + 1 end
      local name = "n" .. math.floor(status / 100) .. "xx"
      if _G[name] ~= nil then _G[name] = _G[name] + 1 end
   end
end

-- Print one line. Latencies are in milliseconds, the rate is per second.
function figures.done(name)
   return function(summary, latency)
      local seconds = summary.duration / 1e6
      local errors = summary.errors
      local line = {
         "figures: test=" .. name,
         string.format("requests=%d", summary.requests),
         string.format("rate=%.1f", summary.requests / seconds),
         string.format("mean_ms=%.3f", latency.mean / 1000),
         string.format("p50_ms=%.3f", latency:percentile(50) / 1000),
         string.format("p99_ms=%.3f", latency:percentile(99) / 1000),
         string.format("p999_ms=%.3f", latency:percentile(99.9) / 1000),
         string.format("max_ms=%.3f", latency.max / 1000),
         string.format("mbit=%.1f", summary.bytes * 8 / seconds / 1e6),
         -- wrk counts answers of 400 and above as errors.
         string.format("errors=%d", errors.status),
         string.format("failed=%d", errors.connect + errors.read + errors.write + errors.timeout),
      }
      for _, counter in ipairs(COUNTERS) do
         local sum, counted = 0, false
         for _, thread in ipairs(threads) do
            local value = thread:get(counter)
            if value ~= nil then sum, counted = sum + value, true end
         end
         if counted then table.insert(line, string.format("%s=%d", counter:sub(2), sum)) end
      end
      print(table.concat(line, " "))
   end
end

return figures
