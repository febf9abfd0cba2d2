-- ratelimit.lua: GET of clients under a rate limit; counts 2xx and 429 answers.
--
--   wrk -t1 -c32 -d5s -s bench/wrk/ratelimit.lua URL -- clients=10 [header=x-user] [host=NAME]
--
-- clients: values of the header that the limit counts by, in turn. allowed = 2xx / seconds / clients is the limit that applies.

local figures = dofile((debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "figures.lua")

setup = figures.setup
done = figures.done("ratelimit")

local prepared, at = {}, 0

function init(arguments)
   local options = figures.options(arguments, { clients = 10, header = "x-user", host = "" })
   for number = 1, options.clients do
      local headers = { [options.header] = "client-" .. number }
      if options.host ~= "" then headers["Host"] = options.host end
      prepared[number] = wrk.format("GET", nil, headers)
   end
   figures.count_statuses()
end

function request()
   at = at % #prepared + 1
   return prepared[at]
end
